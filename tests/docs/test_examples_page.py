"""The page of examples mentions all of them, and what it tells to type works."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from doc_pages import ROOT, read_blocks
from isthmus.cli.commands import app

FOLDER = ROOT / "examples"
PAGE = FOLDER / "README.md"
COMMANDS = [
    line for block in read_blocks(PAGE) for line in block.text.splitlines() if line.startswith("isthmus explain ")
]


def test_every_example_is_on_the_page() -> None:
    files = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.suffix in (".json", ".py")]
    assert len(files) > 14
    text = PAGE.read_text()
    assert [name for name in files if f"`{name}`" not in text] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_it_says(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code in ((0, 2) if "--strict" in command else (0,)), done.output
    assert done.output.strip()
