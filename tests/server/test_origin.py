"""Web pages cannot call a gateway on the loopback; programs and local pages can."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowing import Flow
from isthmus.testing import chat

FOREIGN = {
    "a page that posts": {"Origin": "https://evil.example"},
    "a sandboxed page": {"Origin": "null"},
    "a page that looks local": {"Origin": "https://127.0.0.1.evil.example"},
    "a name rebound to the loopback": {"Host": "evil.example:8484"},
    "a name that looks local": {"Host": "localhost.evil.example"},
}
LOCAL = {
    "a program": {},
    "localhost": {"Host": "localhost:8484"},
    "another loopback address": {"Host": "127.0.0.2"},
    "IPv6": {"Host": "[::1]:8484"},
    "a page served from here": {"Origin": "http://localhost:3000"},
}


def ask(flow: Flow, headers: dict[str, str]) -> tuple[int, bytes]:
    parts = urlsplit(flow.server.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        connection.request("POST", "/v1/responses", b'{"input": "hi"}', {"content-type": "text/plain", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_pages_are_refused_before_anything_is_sent(flow: Flow, headers: dict[str, str]) -> None:
    status, body = ask(flow, headers)
    assert status == 403
    assert b"foreign_origin" in body
    assert flow.sent == []


@pytest.mark.parametrize("host", ["127.0.0.2", "LocalHost"])
def test_every_name_of_the_loopback_keeps_foreign_pages_out(special: Callable[..., Flow], host: str) -> None:
    flow = special(extra=f'[server]\nhost = "{host}"\n')
    flow.script(chat("ok"))
    assert ask(flow, FOREIGN["a page that posts"])[0] == 403
    assert ask(flow, FOREIGN["a name rebound to the loopback"])[0] == 403
    assert ask(flow, {})[0] == 200


@pytest.mark.parametrize("headers", LOCAL.values(), ids=LOCAL.keys())
def test_programs_and_local_pages_are_welcome(flow: Flow, headers: dict[str, str]) -> None:
    flow.script(chat("ok"))
    assert ask(flow, headers)[0] == 200


def test_a_named_page_is_allowed(special: Any) -> None:
    flow = special(store="memory", extra='[server]\nallow_origins = ["app://notes"]')
    flow.script(chat("ok"))
    assert ask(flow, {"Origin": "app://notes"})[0] == 200
    assert ask(flow, {"Origin": "app://other"})[0] == 403
