"""Web pages cannot call a gateway on the loopback; programs and local pages can."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowing import Flow
from isthmus.server.origin import host_name, origin_host
from isthmus.testing import chat
from raw_http import send_raw

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


# ── broken names ───────────────────────────────────────────────────────────────────────────────────────

BROKEN = {
    "no Host": "",
    "two Hosts": "Host: localhost\r\nHost: localhost\r\n",
    "Host: [": "Host: [\r\n",
    "Host: [::1": "Host: [::1\r\n",
    "Host: [zz]": "Host: [zz]\r\n",
    "a Host with a path": "Host: localhost/path\r\n",
    "a Host with a user": "Host: me@localhost\r\n",
    "a port that is none": "Host: localhost:http\r\n",
    "Origin: http://[": "Host: localhost\r\nOrigin: http://[\r\n",
    "an Origin without a scheme": "Host: localhost\r\nOrigin: localhost\r\n",
    "two Origins": "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n",
}


@pytest.mark.parametrize("lines", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_host_or_origin_is_a_400(flow: Flow, lines: str) -> None:
    answer = send_raw(flow.server.url, f"GET /v1/models HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
    assert (answer.status, answer.error["code"]) == (400, "invalid_host")
    assert answer.error["param"] in ("Host", "Origin")


def test_it_is_one_beyond_the_loopback_too(special: Any) -> None:
    flow = special(store="memory", extra='[server]\nhost = "0.0.0.0"\nopen = true')
    url = flow.server.url.replace("0.0.0.0", "127.0.0.1")
    assert send_raw(url, b"GET /health HTTP/1.1\r\nHost: [\r\nConnection: close\r\n\r\n").status == 400
    assert send_raw(url, b"GET /health HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n").status == 200


def test_the_oldest_http_needs_no_host(flow: Flow) -> None:
    assert send_raw(flow.server.url, b"GET /health HTTP/1.0\r\n\r\n").status == 200


def test_a_named_page_is_also_a_name_of_ours(special: Any) -> None:
    """A proxy on this machine hands the name on under which people know us."""
    flow = special(store="memory", extra='[server]\nallow_origins = ["https://gateway.example"]')
    flow.script(chat("ok"))
    assert ask(flow, {"Host": "gateway.example"})[0] == 200
    assert ask(flow, {"Host": "other.example"})[0] == 403


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:80", "localhost"),
        ("127.0.0.1:8484", "127.0.0.1"),
        ("[::1]:8484", "::1"),
        ("", ""),
        ("[::1]x", None),
        ("a b", None),
    ],
)
def test_the_name_in_a_host(host: str, name: str | None) -> None:
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:3000", "localhost"),
        ("http://[::1]:3000", "::1"),
        ("app://notes", "notes"),
        ("file://", ""),
        ("http://x/y", None),
        ("http://[", None),
    ],
)
def test_the_host_in_an_origin(origin: str, host: str | None) -> None:
    assert origin_host(origin) == host
