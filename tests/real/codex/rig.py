"""The real `codex exec` on the real gateway with a scripted model behind it, on loopback, for one test.

Codex gets a home and a workspace of its own, a configuration that keeps it from dialling anyone, and a proxy that
leads nowhere, so that an attempt to leave the machine fails at once instead of hanging.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import ConfigError
from isthmus.providers import load_provider
from isthmus.providers.codex_catalog import codex_catalogue, describe_offered
from isthmus.testing import ScriptedUpstream, Step
from isthmus.upstream.codex.options import find_binary
from serving import GatewayThread, running_gateway_server

Json = dict[str, Any]

try:
    BINARY: Path | None = find_binary()
except ConfigError:
    BINARY = None

real = [pytest.mark.real, pytest.mark.skipif(BINARY is None, reason="no codex binary: install `isthmus[codex]`")]

DEEPSEEK, GLM, LLAMA = "deepseek/deepseek-v4-pro", "zhipu/glm-5.3", "llama-cpp/llama-4-scout"
MODELS = [pytest.param(DEEPSEEK, id="deepseek"), pytest.param(GLM, id="glm"), pytest.param(LLAMA, id="llama")]

CLASSIC, LITE, UNKNOWN, OURS = "gpt-5.5", "gpt-6.1-sol", "my-local-model", "ours"
"""How Codex sees the model: `tools` in the request; code mode with `additional_tools`; no metadata; our catalogue."""

NOWHERE = "http://127.0.0.1:9"

PATCH = "*** Begin Patch\n*** Add File: hello.txt\n+hello world\n*** End Patch\n"

_QUIET = """
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
plugin_sharing = false
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one `codex exec` did."""

    code: int
    events: list[Json]
    stderr: str

    def items(self, kind: str) -> list[Json]:
        done = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return [item for item in done if item["type"] == kind]

    @property
    def said(self) -> list[str]:
        return [item["text"] for item in self.items("agent_message")]

    @property
    def thought(self) -> list[str]:
        return [item["text"] for item in self.items("reasoning")]

    @property
    def commands(self) -> list[tuple[str, int]]:
        return [(item["aggregated_output"], item["exit_code"]) for item in self.items("command_execution")]

    @property
    def usage(self) -> Json:
        return next(event["usage"] for event in self.events if event["type"] == "turn.completed")

    @property
    def failure(self) -> str:
        return next(event["error"]["message"] for event in self.events if event["type"] == "turn.failed")

    @property
    def reconnects(self) -> list[str]:
        said = [event["message"] for event in self.events if event["type"] == "error"]
        return [message for message in said if message.startswith("Reconnecting")]

    def worked(self) -> Outcome:
        assert self.code == 0, (self.events[-3:], self.stderr[-2000:])
        return self


class Rig:
    def __init__(self, folder: Path, upstream: ScriptedUpstream, gateway: GatewayThread, target: str) -> None:
        self.folder = folder
        self.upstream = upstream
        self.gateway = gateway
        self.target = target
        self.home, self.work = folder / "codex", folder / "work"
        self.home.mkdir()
        self.work.mkdir()

    @property
    def bodies(self) -> list[Json]:
        """What the model was sent, in order."""
        return [request.json for request in self.upstream.requests]

    def exec(
        self,
        prompt: str,
        *arguments: str,
        slug: str = CLASSIC,
        root: str = "",
        provider: str = "request_max_retries = 0\nstream_max_retries = 0",
        tables: str = "",
        command: tuple[str, ...] = ("exec",),
        proxy: str = NOWHERE,
        named: str = "Gateway",
    ) -> Outcome:
        """Run it: `root` keys, keys of the `provider` block and more `tables` are TOML text for its configuration."""
        assert BINARY is not None
        model = slug
        if slug == OURS:
            model = self.target
            root += f'\nmodel_catalog_json = "{self._catalogue()}"'
        (self.home / "config.toml").write_text(
            f'model = "{model}"\nmodel_provider = "gateway"\napproval_policy = "never"\n'
            f'sandbox_mode = "danger-full-access"\n{root}\n[model_providers.gateway]\nname = "{named}"\n'
            f'base_url = "{self.gateway.url}/v1"\nwire_api = "responses"\n{provider}\n{tables}\n{_QUIET}'
        )
        line = [str(BINARY), *command, "--skip-git-repo-check", "--json", *arguments, prompt]
        ended = subprocess.run(
            line,
            cwd=self.work,
            env=environment(self.home, proxy),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        events = [json.loads(row) for row in ended.stdout.decode().splitlines() if row.startswith("{")]
        return Outcome(ended.returncode, events, ended.stderr.decode())

    def _catalogue(self) -> Path:
        name = self.target.partition("/")[0]
        known = describe_offered(self.target, {name: load_provider(name)}, {})
        path = self.folder / "models.json"
        path.write_text(json.dumps(codex_catalogue({self.target: known})))
        return path


@contextmanager
def rig(
    folder: Path, *steps: Step, target: str = DEEPSEEK, heartbeat: str = "200ms", server: str = ""
) -> Iterator[Rig]:
    """Gateway and scripted model; every name that Codex may use leads to `target`."""
    with ScriptedUpstream.running(steps) as upstream:
        config = gateway_config(upstream.base_url, target, heartbeat, server)
        with running_gateway_server(config) as gateway:
            yield Rig(folder, upstream, gateway, target)


def environment(home: Path, proxy: str = NOWHERE) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def calls_named(body: Json, name: str) -> list[Json]:
    """All calls of a tool in a request's history."""
    made = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    return [call for call in made if call["function"]["name"] == name]


def result_of(body: Json, call_id: str) -> Any:
    return next(
        message["content"]
        for message in body["messages"]
        if message["role"] == "tool" and message["tool_call_id"] == call_id
    )


def tool_names(body: Json) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ()) if tool["type"] == "function"]


@functools.cache
def shell_call(slug: str) -> str:
    """The tool through which a model of this kind runs commands."""
    return "exec" if slug == LITE else "exec_command"


def shell_arguments(slug: str, *commands: str) -> Json:
    if slug != LITE:
        (command,) = commands
        return {"cmd": command}
    runs = [f"text((await tools.exec_command({{cmd: {json.dumps(each)}}})).output);" for each in commands]
    return {"input": "\n".join(runs)}


def patch_call(slug: str) -> tuple[str, Json]:
    if slug == LITE:
        return "exec", {"input": f"text(await tools.apply_patch({json.dumps(PATCH)}))"}
    return "apply_patch", {"input": PATCH}


def gateway_config(base_url: str, target: str, heartbeat: str = "200ms", server: str = "") -> str:
    name = target.partition("/")[0]
    return f"""
[server]
port = 0
heartbeat = "{heartbeat}"
{server}
[store]
url = "memory:"
[models]
default = "{target}"
aliases = {{ "*" = "{target}" }}
demo = false
[providers.{name}]
base_url = "{base_url}"
api_key = "sk-scripted"
retries = 0
"""
