"""The guide to MCP servers shows configurations that are whole, and a client that gets what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_pages import ROOT
from isthmus.config import load_config

PAGE = (ROOT / "docs" / "guides" / "mcp.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", blocks("toml"))
def test_its_configurations_are_whole(tmp_path: Path, text: str) -> None:
    pytest.importorskip("mcp")
    file = tmp_path / "isthmus.toml"
    file.write_text(text)
    file.chmod(0o600)
    reading = load_config(file, environ={"HOME": str(tmp_path), "GITHUB_MCP_TOKEN": "t0ken"})
    assert reading.warnings == ()
    assert reading.config.mcp
