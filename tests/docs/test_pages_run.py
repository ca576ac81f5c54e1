"""What the pages show is what happens: their commands and programs are run."""

from __future__ import annotations

import pytest

from doc_pages import ROOT, Gateway, Shown, check_output, read_commands, read_programs

PAGES = [
    ROOT / "docs" / "getting-started.md",
    ROOT / "docs" / "guides" / "clients" / "curl.md",
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
]
COMMANDS = [shown for page in PAGES for shown in read_commands(page)]
PROGRAMS = [shown for page in PAGES for shown in read_programs(page)]


@pytest.mark.parametrize("shown", COMMANDS, ids=str)
def test_a_command_prints_what_its_page_shows(shown: Shown, gateway: Gateway) -> None:
    check_output(shown, gateway.run_command(shown.source))


@pytest.mark.parametrize("shown", PROGRAMS, ids=str)
def test_a_program_prints_what_its_page_shows(shown: Shown, gateway: Gateway) -> None:
    check_output(shown, gateway.run_program(shown.source))
