"""The whole house for one test: a client, our real gateway, the real `codex app-server`, a scripted upstream behind it.

with codex_house(folder) as house:
    house.script(says("Hello"))
    house.create(house.ask("Hi"))          # and house.sent[0] is what the upstream got
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isthmus.testing import ScriptedUpstream, Step
from isthmus.upstream.codex.backend import CodexBackend
from isthmus.upstream.codex.supervisor import Health
from real.codex_backend.rig import WEATHER
from serving import GatewayThread, running_gateway_server
from talking import Json, Talk
from waiting import until

MODEL = "codex/gpt-5.5"
CHAT_WEATHER = {"type": "function", "function": {name: value for name, value in WEATHER.items() if name != "type"}}


class House(Talk):
    def __init__(self, gateway: GatewayThread, upstream: ScriptedUpstream) -> None:
        super().__init__(gateway.url)
        self.server = gateway
        self.upstream = upstream
        self._before = len(upstream.requests)

    def script(self, *steps: Step) -> None:
        self.upstream.push(*steps)

    @property
    def sent(self) -> list[Json]:
        """The bodies that the upstream got during this test, from Codex."""
        return [request.json for request in self.upstream.requests[self._before :]]

    @property
    def threads(self) -> list[str]:
        """Which Codex thread each of them came from."""
        return [body["prompt_cache_key"] for body in self.sent]

    def wait_sent(self, count: int = 1) -> Any:
        return self.upstream.wait_received(self._before + count)

    def ask(self, text: Any = "Hello?", /, **fields: Any) -> Json:
        return {"model": MODEL, "input": text, **fields}

    def say(self, text: str = "Hello?", /, **fields: Any) -> Json:
        return {"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}

    @property
    def backend(self) -> CodexBackend:
        backend = self.server.gateway.directory.served["codex"].backend
        assert isinstance(backend, CodexBackend)
        return backend

    @property
    def health(self) -> Health:
        return self.backend.health()

    def kill_codex(self) -> None:
        """`kill -9`, and wait until the gateway knows. Each kill counts as a first one: the next start comes soon."""
        pid = self.health.pid
        self.backend._supervisor._failures = 0
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: self.health.pid != pid)

    def let_pass(self, seconds: float) -> None:
        """Put the clock of the gateway forward: threads that nobody came back to in time are closed."""
        self.server.skip(seconds)

    def wait_until(self, holds: Any) -> None:
        until(holds)

    def check(self) -> None:
        assert self.upstream.remaining == 0, f"{self.upstream.remaining} step(s) were never asked for"
        self.upstream.check()
        self.wait_until(lambda: len(self.server.gateway.runs) == 0)


@contextmanager
def codex_house(folder: Path, *, codex: str = "", extra: str = "", codex_config: str = "") -> Iterator[House]:
    """A house of its own; `codex` are lines of `[providers.codex.codex]`, `codex_config` of Codex's own config."""
    with ScriptedUpstream.running() as upstream:
        home = make_home(folder, upstream.base_url, codex_config)
        with running_gateway_server(gateway_toml(home, codex, extra)) as gateway:
            house = House(gateway, upstream)
            yield house
            house.check()


def make_home(folder: Path, base_url: str, codex_config: str = "") -> Path:
    """A `CODEX_HOME` whose model provider is the scripted upstream, without retries."""
    home = folder / "codex-home"
    home.mkdir(exist_ok=True)
    provider = f'name = "scripted"\nbase_url = "{base_url}"\nwire_api = "responses"\n'
    retries = "request_max_retries = 0\nstream_max_retries = 0\n"
    text = f'model_provider = "scripted"\n[model_providers.scripted]\n{provider}{retries}{codex_config}'
    (home / "config.toml").write_text(text)
    return home


def gateway_toml(home: Path, codex: str = "", extra: str = "") -> str:
    store = "" if "[store]" in extra else '[store]\nurl = "memory:"\n'
    return (
        f'[models]\ndemo = false\ndefault = "{MODEL}"\n[providers.codex]\nuses = "codex"\n[providers.codex.codex]\n'
        f'home = "{home}"\n{codex}\n[server]\nport = 0\n[log]\nlevel = "error"\n{store}{extra}'
    )


def answers(response: Json, **outputs: str) -> list[Json]:
    """Tool outputs for the calls of a response, by call id."""
    made = [item["call_id"] for item in response["output"] if item["type"] == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call_id, "output": outputs[call_id]}
        for call_id in made
        if call_id in outputs
    ]


def calls_in(response: Json) -> list[tuple[str, str, str]]:
    return [
        (item["call_id"], item["name"], item["arguments"])
        for item in response["output"]
        if item["type"] == "function_call"
    ]


def chat_text(chunks: list[Json]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def chat_calls(chunks: list[Json]) -> list[tuple[str, str, str]]:
    """Tool calls put together as OpenAI's clients do it."""
    made: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            for fragment in choice["delta"].get("tool_calls") or ():
                call = made.setdefault(fragment["index"], ["", "", ""])
                call[0] += fragment.get("id") or ""
                call[1] += fragment["function"].get("name") or ""
                call[2] += fragment["function"].get("arguments") or ""
    return [(id, name, arguments) for id, name, arguments in made.values()]


def finish_reasons(chunks: list[Json]) -> list[str]:
    return [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
