"""What the pages show is what happens: their commands and programs are run."""

from __future__ import annotations

import json

import pytest

from doc_pages import ROOT, Gateway, Shown, check_output, read_blocks, read_commands, read_programs

STARTING = [ROOT / "docs" / name for name in ("getting-started.md", "troubleshooting.md")]
PAGES = [*STARTING, *sorted((ROOT / "docs" / "concepts").glob("*.md"))]
COMMANDS = [shown for page in PAGES for shown in read_commands(page)]
PROGRAMS = [shown for page in PAGES for shown in read_programs(page)]


@pytest.mark.parametrize("shown", COMMANDS, ids=str)
def test_a_command_prints_what_its_page_shows(shown: Shown, gateway: Gateway) -> None:
    check_output(shown, gateway.run_command(shown.source))


@pytest.mark.parametrize("shown", PROGRAMS, ids=str)
def test_a_program_prints_what_its_page_shows(shown: Shown, gateway: Gateway) -> None:
    check_output(shown, gateway.run_program(shown.source))


def test_the_diagnostics_on_the_page_of_planning_are_those_of_the_request_above_them(gateway: Gateway) -> None:
    page = ROOT / "docs" / "concepts" / "planning.md"
    (shown,) = (json.loads(block.text) for block in read_blocks(page) if block.language == "json")
    (asked,) = (each.source for each in read_commands(page) if "apply_patch" in each.source)
    assert json.loads(gateway.run_command(asked))["isthmus"] == shown
