"""A gateway with its page, over a real socket, and a browser without scripts to look at it."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from isthmus.testing import ScriptedUpstream, chat
from serving import GatewayThread, running_gateway_server
from talking import Talk


@dataclass
class Seen:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def token(self) -> str:
        """The word that forms of this page bring along."""
        found = re.search(r'data-token="([0-9a-f]+)"', self.text)
        assert found is not None
        return found[1]


@dataclass
class Browser:
    """Asks as a browser does, and keeps its cookie."""

    gateway: GatewayThread
    upstream: ScriptedUpstream
    cookie: str = ""
    traced: int = field(default=0)

    @property
    def talk(self) -> Talk:
        return Talk(self.gateway.url)

    @property
    def origin(self) -> str:
        return f"http://{urlsplit(self.gateway.url).netloc}"

    def look(self, path: str, **headers: str) -> Seen:
        return self.ask("GET", path, None, {"accept": "text/html,*/*", **headers})

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Seen:
        told = {"origin": self.origin, "content-type": "application/x-www-form-urlencoded", **headers}
        return self.ask("POST", path, urlencode(fields).encode(), told)

    def ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Seen:
        connection = http.client.HTTPConnection(urlsplit(self.gateway.url).netloc, timeout=60)
        told = {**headers, **({"cookie": self.cookie} if self.cookie else {})}
        connection.request(method, path, body, {name: value for name, value in told.items() if value})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        if "set-cookie" in found:
            self.cookie = found["set-cookie"].partition(";")[0]
        return Seen(answer.status, found, text)

    def made(self, body: dict[str, object], path: str = "/v1/responses", **headers: str) -> str:
        """Ask the model; gives the request's id, once its trace can be read."""
        reply = self.talk.post(path, body, headers)
        id = reply.headers["x-request-id"]
        tracing = self.gateway.gateway.tracing
        if tracing is not None:
            self.gateway.do(tracing.settle())
        return id


Opened = Callable[..., Browser]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Start a gateway with these lines of configuration."""
    with ExitStack() as stack:

        def start(extra: str = "", trace: str = 'capture = "full"', server: str = "", answer: str = "hello") -> Browser:
            upstream = stack.enter_context(ScriptedUpstream.running(default=chat(answer), strict=False))
            toml = (
                f'[server]\nport = 0\n{server}\n[models]\ndemo = false\ndefault = "main/model"\n'
                f'[store]\nurl = "sqlite:{tmp_path / "page.db"}"\n[trace]\n{trace}\n'
                f'[providers.main]\nuses = "openai-compatible"\nbase_url = "{upstream.base_url}"\nretries = 0\n{extra}'
            )
            return Browser(stack.enter_context(running_gateway_server(toml)), upstream)

        yield start


@pytest.fixture
def browser(opened: Opened) -> Browser:
    return opened()
