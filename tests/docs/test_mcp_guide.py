"""The guide to MCP servers shows configurations that are whole, and a client that gets what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from doc_pages import ROOT
from flowing import PLAIN, running_flow
from isthmus.config import load_config
from isthmus.config.schema import McpConfig
from isthmus.testing import chat
from mcp_world import running_server

PAGE = (ROOT / "docs" / "guides" / "mcp.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", blocks("toml"))
def test_its_configurations_are_whole(tmp_path: Path, text: str) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(text)
    file.chmod(0o600)
    reading = load_config(file, environ={"HOME": str(tmp_path), "GITHUB_MCP_TOKEN": "t0ken"})
    assert reading.warnings == ()
    assert reading.config.mcp


def test_its_client_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A label, and nothing else: list, call, answer."""
    (program,) = blocks("python")
    with running_server() as server, running_flow(tmp_path, extra=f'[mcp.github]\nurl = "{server}"\n') as flow:
        flow.script(chat(calls=[("c", "github__weather", {"city": "Riga"})]), chat("Nothing is open."))
        monkeypatch.setenv("ISTHMUS_URL", flow.server.url)
        monkeypatch.setenv("MODEL", PLAIN)
        exec(program, {})
    assert capsys.readouterr().out == "['mcp_list_tools', 'mcp_call', 'message']\nNothing is open.\n"


def test_its_names_are_those_of_the_settings() -> None:
    ours = set(McpConfig.__struct_fields__)
    named = set(re.findall(r"`((?:max|allowed|private|require|read)_\w+)`", PAGE)) - {"read_only"}
    assert {name for name in named if name not in ours} <= {"max_result"}
    assert "`tools.timeout`" in PAGE
