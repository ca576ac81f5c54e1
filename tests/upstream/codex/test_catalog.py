"""The plain catalog: read from the program, written for it, and every way in which that fails."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from codex_program import alive, install
from isthmus.errors import ConfigError
from isthmus.upstream.codex.catalog import with_plain_catalog
from isthmus.upstream.codex.options import CodexOptions


def _written(folder: Path, *, printed: str | None = None, file: Path | None = None, patience: float = 60) -> Path:
    program = install(folder)
    if printed is not None:
        program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    options = CodexOptions(binary=program, config={"mine": 1}, handshake_timeout=patience)
    file = file or folder / "models.json"
    made = asyncio.run(with_plain_catalog(options, file))
    assert made.config == {"mine": 1, "model_catalog_json": str(file)}
    return file


def test_the_catalog_loses_codexs_own_tools(tmp_path: Path) -> None:
    catalog = {"models": [{"slug": "m", "tool_mode": "code_mode_only"}]}
    file = _written(tmp_path, printed=json.dumps(catalog))
    (model,) = json.loads(file.read_bytes())["models"]
    assert (model["slug"], model["tool_mode"]) == ("m", None)


@pytest.mark.parametrize("printed", ["nothing of the kind", "[]"])
def test_a_program_that_prints_no_catalog_is_told(tmp_path: Path, printed: str) -> None:
    with pytest.raises(ConfigError, match=r"0\.163 or newer"):
        _written(tmp_path, printed=printed)


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    (tmp_path / "trouble").write_text("no catalog")
    with pytest.raises(ConfigError, match="does not print its model catalog"):
        _written(tmp_path, patience=0.5)
    assert alive(tmp_path / "codex") == []


def test_a_program_that_is_gone_is_told_and_not_raised_as_a_bug(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not an executable file"):
        asyncio.run(with_plain_catalog(CodexOptions(binary=tmp_path / "gone"), tmp_path / "models.json"))


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        _written(tmp_path, file=tmp_path / "gone" / "models.json")
