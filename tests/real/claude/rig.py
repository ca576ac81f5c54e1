"""The real `claude -p` on the real gateway with a scripted model behind it, on loopback, for one test.

Claude Code gets a home and a workspace of its own, what `isthmus claude run` tells it, and a proxy that leads nowhere,
so that an attempt to leave the machine fails at once instead of hanging.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.claude_keys import Settings
from isthmus.testing import ScriptedUpstream, Step
from real.claude.vendors import DEEPSEEK, GLM, LLAMA, MISTRAL, playing
from serving import GatewayThread, running_gateway_server

Json = dict[str, Any]

BINARY = Path(__file__).parents[3] / ".venv" / "claude" / "node_modules" / ".bin" / "claude"
NOWHERE = "http://127.0.0.1:9"
PATIENCE = 90
"""Seconds for one run: far more than any of them needs."""

real = [
    pytest.mark.real,
    pytest.mark.skipif(not BINARY.exists(), reason="no `claude`: `make .venv/.installed-claude` fetches it"),
]
MODELS = [
    pytest.param(DEEPSEEK, id="deepseek"),
    pytest.param(GLM, id="glm"),
    pytest.param(MISTRAL, id="mistral"),
    pytest.param(LLAMA, id="llama"),
]
CLAUDE = "anthropic/claude-opus-5"
_TOOLS = "Bash,Edit,Write,Read,Agent,ToolSearch,WebSearch,mcp__shop"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one `claude -p` did."""

    code: int
    events: list[Json]
    stderr: str

    @property
    def result(self) -> Json:
        return next((event for event in reversed(self.events) if event["type"] == "result"), {})

    @property
    def said(self) -> str:
        return str(self.result.get("result"))

    @property
    def session(self) -> str:
        return str(self.result["session_id"])

    def blocks(self, kind: str) -> list[Json]:
        """The content blocks of one kind, of both sides."""
        contents = [event["message"]["content"] for event in self.events if event["type"] in ("assistant", "user")]
        return [
            block for content in contents if isinstance(content, list) for block in content if block["type"] == kind
        ]

    @property
    def calls(self) -> list[str]:
        return [block["name"] for block in self.blocks("tool_use")]

    @property
    def thought(self) -> list[str]:
        return [block["thinking"] for block in self.blocks("thinking")]

    @property
    def failed_calls(self) -> list[str]:
        return [str(block["content"]) for block in self.blocks("tool_result") if block.get("is_error")]

    @property
    def compactions(self) -> list[Json]:
        return [event for event in self.events if event.get("subtype") == "compact_boundary"]

    def worked(self) -> Outcome:
        assert (self.code, self.result.get("is_error")) == (0, False), (self.said, self.stderr[-1000:])
        return self


class Rig:
    def __init__(
        self, folder: Path, upstream: ScriptedUpstream, gateway: GatewayThread, target: str, refusals: list[str]
    ) -> None:
        self.folder = folder
        self.upstream = upstream
        self.gateway = gateway
        self.target = target
        self.refusals = refusals
        """What the model's vendor has called wrong."""
        self.home, self.work = folder / "claude", folder / "work"
        self.home.mkdir()
        self.work.mkdir()

    @property
    def bodies(self) -> list[Json]:
        """What the model was sent, in order."""
        return [request.json for request in self.upstream.requests]

    def run(
        self,
        prompt: str,
        *arguments: str,
        model: str | None = None,
        window: int = 200_000,
        output: int = 8_192,
        environment: dict[str, str] | None = None,
        proxy: str = NOWHERE,
    ) -> Outcome:
        chosen = model or self.target
        settings = Settings(self.gateway.url, "any key", chosen, chosen, window, output)
        line = [str(BINARY), "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
        ended = subprocess.run(
            [*line, "--allowedTools", _TOOLS, *arguments, "--", prompt],
            cwd=self.work,
            env={**isolated(self.home, proxy), **settings.variables, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert self.refusals == [], self.refusals
        rows = [row for row in ended.stdout.decode().splitlines() if row.startswith("{")]
        return Outcome(ended.returncode, [json.loads(row) for row in rows], ended.stderr.decode())


@contextmanager
def rig(
    folder: Path, *steps: Step, target: str = DEEPSEEK, lenient: bool = False, server: str = "", more: str = ""
) -> Iterator[Rig]:
    """Gateway and scripted model, which refuses what its vendor refuses unless it is `lenient`."""
    refusals: list[str] = []
    script: Sequence[Step] = steps if lenient else playing(target, refusals, *steps)
    with (
        ScriptedUpstream.running(script) as upstream,
        running_gateway_server(gateway_config(upstream.base_url, target, server, more)) as gateway,
    ):
        yield Rig(folder, upstream, gateway, target, refusals)


def isolated(home: Path, proxy: str = NOWHERE) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "CLAUDE_CONFIG_DIR": str(home),
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": "127.0.0.1,localhost",
        # A wait before the next attempt is Claude Code's own business; how many there are is asked by name.
        "CLAUDE_CODE_MAX_RETRIES": "2",
    }


def gateway_config(base_url: str, target: str, server: str = "", more: str = "") -> str:
    name = target.partition("/")[0]
    return f"""
[server]
port = 0
heartbeat = "200ms"
{server}
[store]
url = "memory:"
[models]
default = "{target}"
demo = false
[providers.{name}]
base_url = "{base_url}"
api_key = "sk-scripted"
retries = 0
{more}
"""


def result_of(body: Json, call_id: str) -> Any:
    """What a call of a request's history was answered with."""
    return next(
        message["content"]
        for message in body["messages"]
        if message["role"] == "tool" and message["tool_call_id"] == call_id
    )


def results(body: Json) -> list[Any]:
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


def tool_names(body: Json) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ()) if tool["type"] == "function"]
