"""The `codex` program: its version, and what to type where there is no command of that name."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from isthmus.cli.codex_program import how_to_start, version_of
from isthmus.errors import ConfigError


def program(folder: Path, words: str) -> Path:
    file = folder / "codex"
    file.write_text(f"#!/bin/sh\necho '{words}'\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("words", "version"),
    [("codex-cli 0.163.0", (0, 163, 0)), ("codex 1.2.3", (1, 2, 3)), ("hello", None), ("codex-cli x", None)],
)
def test_its_version_is_what_it_says(tmp_path: Path, words: str, version: tuple[int, int, int] | None) -> None:
    assert version_of(program(tmp_path, words)) == version


def test_a_program_that_does_not_run_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not run"):
        version_of(tmp_path)


def test_where_there_is_no_command_the_program_of_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bundle = types.ModuleType("codex_cli_bin")
    bundle.bundled_codex_path = lambda: Path("/opt/some where/codex")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "codex_cli_bin", bundle)
    told = how_to_start()
    assert "`isthmus codex run` finds the program" in told[0]
    assert told[1] == "  `alias codex='/opt/some where/codex'`"
    monkeypatch.setitem(sys.modules, "codex_cli_bin", None)
    assert "npm install -g @openai/codex" in how_to_start()[0]
    program(tmp_path, "codex-cli 0.163.0")
    assert how_to_start() == ()
