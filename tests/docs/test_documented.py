"""Whatever a user can write or meet is documented: commands, options, diagnostics, config keys, providers, statuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import isthmus
from doc_pages import ROOT
from isthmus import Bridge
from isthmus.bridge.diagnostics import CODES
from isthmus.bridge.finish import TABLE
from isthmus.bridge.turn import TRANSITIONS
from isthmus.cli.commands import app
from isthmus.client.bridge import BridgeClient
from isthmus.client.options import ChatOptions, ResumeOptions, RunOptions
from isthmus.config.known import known_names
from isthmus.config.reference import config_reference
from isthmus.errors import FAILURES

REFERENCE = ROOT / "docs" / "reference"
CONCEPTS = ROOT / "docs" / "concepts"


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command as it is typed, with its long options."""
    yield from _walk(get_command(app), "isthmus")


def _walk(command: object, name: str) -> Iterator[tuple[str, list[str]]]:
    below = {name: command.get_command(None, name) for name in getattr(command, "list_commands", lambda _: ())(None)}
    options = [option for parameter in command.params for option in parameter.opts]  # type: ignore[attr-defined]
    if not below:
        yield name, [option for option in options if option.startswith("--") and option != "--help"]
    for child in below.values():
        yield from _walk(child, f"{name} {child.name}")


COMMANDS = dict(commands())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_and_its_options_are_documented(command: str) -> None:
    page = (REFERENCE / "cli.md").read_text()
    assert command in page
    assert [option for option in COMMANDS[command] if option not in page] == []


@pytest.mark.parametrize("code", CODES)
def test_a_diagnostic_is_documented_with_its_meaning(code: str) -> None:
    page = (REFERENCE / "diagnostics.md").read_text()
    assert f"`{code}`" in page
    assert " ".join(CODES[code].split()) in " ".join(page.split())


def test_every_config_key_is_documented_as_the_schema_says_it() -> None:
    page = (REFERENCE / "config.md").read_text().splitlines()
    rows = [line for line in config_reference().splitlines() if line.startswith(("| `", "## "))]
    assert len(rows) > 50
    assert [row for row in rows if row not in page] == []


def test_every_public_name_has_its_place_on_the_page_of_the_library() -> None:
    page = (REFERENCE / "library.md").read_text()
    named = set(re.findall(r"^##+ `(\w+)`$", page, re.MULTILINE))
    assert named == {*isthmus.__all__} - {"__version__"}


@pytest.mark.parametrize("options", [ChatOptions, RunOptions, ResumeOptions], ids=lambda options: options.__name__)
def test_every_option_of_a_call_is_listed_with_words(options: Any) -> None:
    page = (REFERENCE / "library.md").read_text().split("## Options")[1].split("\n## ")[0]
    rows = {
        name: (calls, words) for name, calls, words in re.findall(r"^\| `(\w+)` .* \| (.*?) \| (.+) \|$", page, re.M)
    }
    call = options.__name__.removesuffix("Options").lower()
    for name in (*options.__annotations__, "output_type"):
        calls, words = rows[name]
        assert calls == "all" or f"`{call}`" in calls, name
        assert words.strip().endswith("."), name


@pytest.mark.parametrize("method", [name for name in vars(BridgeClient) | vars(Bridge) if not name.startswith("_")])
def test_every_method_of_the_bridge_is_on_its_page(method: str) -> None:
    assert f"Bridge.{method}" in (REFERENCE / "library.md").read_text()


@pytest.mark.parametrize("name", known_names())
def test_a_provider_is_on_the_page_of_providers(name: str) -> None:
    assert name in (REFERENCE / "providers.md").read_text()


def test_the_table_of_errors_is_the_one_in_the_code() -> None:
    page = (CONCEPTS / "errors.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| `.*", page, re.MULTILINE)
    ]
    listed = {cells[0].strip("`"): cells[1:10] for cells in rows if len(cells) == 11}
    known = {
        code: [
            str(meaning.status),
            meaning.turn,
            *("yes" if said else "" for said in (meaning.retry, meaning.elsewhere, meaning.eject, meaning.final)),
            str(meaning.wait or ""),
            meaning.codex,
            ", ".join(map(str, meaning.upstream)),
        ]
        for code, meaning in FAILURES.items()
    }
    assert listed == known


def test_every_finish_reason_is_in_the_table_of_streams() -> None:
    page = (CONCEPTS / "streams.md").read_text().split("## Finish reasons")[1].split("\n\n")[1]
    rows = re.findall(r"^\| (`.*?) \| `(\w+)` \| (?:`(\w+)`)? ?", page, re.MULTILINE)
    listed = {reason: (status, detail) for said, status, detail in rows for reason in re.findall(r"`(\w+)`", said)}
    known = {
        reason: (outcome.status, outcome.incomplete_reason or outcome.error_code or "")
        for reason, outcome in TABLE.items()
    }
    assert listed == known


def test_the_phases_on_the_page_are_those_of_the_assembler() -> None:
    page = (CONCEPTS / "streams.md").read_text()
    rows = re.findall(r"^\| (idle|running|ended) \| (\w+) \| (\w+) \| (\w+) \|$", page, re.MULTILINE)
    told = {
        (phase, action): following
        for phase, *cells in rows
        for action, following in zip(("start", "feed", "end"), cells, strict=True)
        if following != "error"
    }
    assert told == TRANSITIONS


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda page: page.stem)
def test_a_decision_is_numbered_dated_and_short(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert len(lines) <= 25
    assert re.fullmatch(rf"# {page.stem[:4]} · .+", lines[0])
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", lines[2])
    assert f"decisions/{page.name}" in (ROOT / "docs" / "README.md").read_text()
