"""A provider that is known, named in a request, and has no key here: every door says which variable to set."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from local_servers import at
from serving import GatewayThread, running_gateway_server

MODEL = "deepseek/deepseek-chat"
MESSAGES = [{"role": "user", "content": "hi"}]
DOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "responses": ("/v1/responses", {"input": "hi"}),
    "a stream": ("/v1/responses", {"input": "hi", "stream": True}),
    "in the background": ("/v1/responses", {"input": "hi", "background": True}),
    "chat": ("/v1/chat/completions", {"messages": MESSAGES}),
    "a stream of chat": ("/v1/chat/completions", {"messages": MESSAGES, "stream": True}),
    "messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 10}),
    "embeddings": ("/v1/embeddings", {"input": "hi"}),
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayThread]:
    with running_gateway_server("[server]\nport = 0\n[store]\nurl = 'memory:'\n[providers.demo]\n") as server:
        yield server


@pytest.mark.parametrize(("path", "body"), DOORS.values(), ids=list(DOORS))
def test_every_door_names_the_variable(gateway: GatewayThread, path: str, body: dict[str, Any]) -> None:
    data = json.dumps({"model": MODEL, **body}).encode()
    request = Request(f"{gateway.url}{path}", data, {"content-type": "application/json"})
    with pytest.raises(OSError) as caught:
        urlopen(request)
    told = json.load(caught.value)["error"]["message"]  # type: ignore[arg-type]
    assert caught.value.status == (404 if "messages" in path else 400)  # type: ignore[attr-defined]
    assert "`DEEPSEEK_API_KEY` in the environment of the gateway" in told
    assert "`[providers.deepseek]`" in told


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    at(tmp_path)
    for name in ("codex", "claude"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho never\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


COMMANDS = {
    "chat": ["chat", "--model", MODEL, "hi"],
    "codex run": ["codex", "run", "--model", MODEL, "--", "exec", "hi"],
    "claude run": ["claude", "run", "--model", MODEL, "--", "-p", "hi"],
}


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_every_command_names_the_variable(command: list[str]) -> None:
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "`DEEPSEEK_API_KEY`" in done.stderr, done.output
    assert "never" not in done.output
