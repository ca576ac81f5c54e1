"""`isthmus mcp list`: what a person sees of a real server, and of one that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("mcp")

from isthmus.cli.commands import app
from mcp_world import running_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server() as url:
        yield url


def run(folder: Path, text: str, *arguments: str, code: int = 0) -> str:
    file = folder / "isthmus.toml"
    file.write_text(text)
    file.chmod(0o600)
    environ = {"NO_COLOR": "1", "COLUMNS": "100", "HOME": str(folder), "TOKEN": "secret-0a1b2c3d4e5f"}
    result = CliRunner().invoke(app, ["mcp", "list", "--config", str(file), *arguments], env=environ)
    assert result.exit_code == code, result.output
    assert "secret-0a1b2c3d4e5f" not in result.output
    return result.output


def test_the_tools_are_shown_that_may_be_called(tmp_path: Path, url: str) -> None:
    text = f"""[mcp.world]
url = "{url}"
headers = {{ Authorization = "Bearer ${{TOKEN}}" }}
allowed_tools = ["weather", "del*"]
require_approval = "writes"
"""
    lines = run(tmp_path, text).splitlines()
    assert lines[0] == "world 2 tools may be called"
    assert lines[1].split() == ["weather", "The", "weather", "in", "a", "city."]
    assert lines[2].split() == ["delete", "asks", "Delete", "something", "for", "good."]


def test_a_server_that_is_not_there_is_told_and_the_others_are_shown(tmp_path: Path, url: str) -> None:
    text = f'[mcp.world]\nurl = "{url}"\n[mcp.gone]\nurl = "http://127.0.0.1:1/mcp"\n'
    told = run(tmp_path, text, code=1)
    assert "gone the MCP server `gone` cannot be reached" in told
    assert "tools may be called" in told
    assert "tools may be called" in run(tmp_path, text, "world")


def test_a_name_that_nobody_has_is_refused(tmp_path: Path, url: str) -> None:
    text = f'[mcp.world]\nurl = "{url}"\n[mcp.hosts]\nallowed_hosts = ["x.example"]\n'
    assert "there are: `world`" in run(tmp_path, text, "hosts", code=1)
    assert "no MCP server has a `url`" in run(tmp_path, "", code=1)


def test_what_is_configured_is_seen_in_the_check(tmp_path: Path, url: str) -> None:
    file = tmp_path / "isthmus.toml"
    file.write_text(f'[mcp.world]\nurl = "{url}"\nread_only = true\n[mcp.hosts]\nallowed_hosts = ["x.example"]\n')
    file.chmod(0o600)
    environ = {"NO_COLOR": "1", "COLUMNS": "100", "HOME": str(tmp_path)}
    result = CliRunner().invoke(app, ["config", "check", "--config", str(file)], env=environ)
    assert result.exit_code == 0, result.output
    assert f"world   {url}" in result.output
    assert "all (read-only)   as the client wants" in result.output
    assert "hosts   x.example" in result.output
