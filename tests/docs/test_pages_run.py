"""What the pages show is what happens: their commands and programs are run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doc_pages import ADDRESS, ROOT, Gateway, Shown, check_output, read_blocks, read_commands, read_programs

STARTING = [ROOT / "docs" / name for name in ("getting-started.md", "troubleshooting.md")]
GUIDES = [ROOT / "docs" / "guides" / name for name in ("images.md", "clients/curl.md")]
"""Those that need no more than the demo model; the others have tests of their own."""
PAGES = [*STARTING, *GUIDES, *sorted((ROOT / "docs" / "concepts").glob("*.md"))]
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


def test_what_it_says_at_its_start_is_what_the_page_for_newcomers_shows(gateway: Gateway) -> None:
    (shown,) = [block.text for block in read_blocks(STARTING[0]) if block.text.startswith("Isthmus ")]
    said = gateway.banner.replace(gateway.address, ADDRESS).replace(str(gateway.home), "/home/you")
    assert said == shown


def test_the_guide_to_keys_is_one_story(tmp_path: Path) -> None:
    """Its commands one after the other, in one store: what a later one prints comes from the earlier ones."""
    home = Gateway("", tmp_path, "")
    commands = list(read_commands(ROOT / "docs" / "guides" / "keys.md"))
    assert len(commands) == 7
    for shown in commands:
        check_output(shown, home.run_command(shown.source))


def test_the_hooks_of_the_guide_are_the_examples() -> None:
    shown = [block.text for block in read_blocks(ROOT / "docs" / "guides" / "hooks.md") if block.language == "python"]
    for text, name in zip(shown, ("redact", "guard"), strict=True):
        assert text.strip() in (ROOT / "examples" / "hooks" / f"{name}.py").read_text()
