"""What browsers ask of a server before a page may read its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.server.cors import cors_headers
from isthmus.server.options import ServerOptions
from isthmus.testing import chat

PAGE = "https://pages.example"
ASKED_FIRST = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang",
}


@pytest.fixture
def flow(special: Callable[..., Flow]) -> Flow:
    return special(store="memory", extra=f'[server]\nallow_origins = ["{PAGE}"]\napi_keys = ["sk-one"]')


KEYED = {"Origin": PAGE, "authorization": "Bearer sk-one"}


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/models", "/v1/responses/resp_1"])
def test_a_browser_that_asks_first_is_told_yes_without_a_key(flow: Flow, path: str) -> None:
    answer = flow.request("OPTIONS", path, headers=ASKED_FIRST)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-headers"] == ASKED_FIRST["Access-Control-Request-Headers"]
    assert {"GET", "POST", "DELETE"} <= set(answer.headers["access-control-allow-methods"].split(", "))
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-private-network" not in answer.headers


def test_a_public_page_may_be_told_that_a_local_server_is_meant(flow: Flow) -> None:
    asked = {**ASKED_FIRST, "Access-Control-Request-Private-Network": "true"}
    assert (
        flow.request("OPTIONS", "/v1/models", headers=asked).headers["access-control-allow-private-network"] == "true"
    )


def test_another_page_is_told_nothing(flow: Flow) -> None:
    answer = flow.request("OPTIONS", "/v1/responses", headers={**ASKED_FIRST, "Origin": "https://evil.example"})
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/responses", {"model": PLAIN, "input": "hi"}, 200),
        ("POST", "/v1/responses", {"model": PLAIN, "input": "hi", "stream": True}, 200),
        ("POST", "/v1/responses", {"input": 4}, 400),
        ("GET", "/v1/models", None, 200),
        ("GET", "/nowhere", None, 404),
        ("PUT", "/v1/models", None, 405),
    ],
)
def test_every_answer_may_be_read_by_the_page(flow: Flow, method: str, path: str, body: Any, status: int) -> None:
    if status == 200 and method == "POST":
        flow.script(chat("ok"))
    answer = flow.request(method, path, body, KEYED)
    assert answer.status == status
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "x-request-id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "Origin"


def test_a_missing_key_may_be_read_as_well(flow: Flow) -> None:
    answer = flow.request("GET", "/v1/models", None, {"Origin": PAGE})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (401, PAGE)


def test_a_program_gets_no_such_headers_but_caches_are_warned(flow: Flow) -> None:
    answer = flow.request("GET", "/v1/models", None, {"authorization": "Bearer sk-one"})
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in answer.headers


def test_a_page_on_the_loopback_may_read_without_being_named() -> None:
    told = dict(cors_headers("http://localhost:3000", ServerOptions(local_only=True)))
    assert told[b"access-control-allow-origin"] == b"http://localhost:3000"
    assert cors_headers("http://localhost:3000", ServerOptions()) == []


def test_everybody_is_a_star() -> None:
    told = dict(cors_headers(PAGE, ServerOptions(allow_origins=frozenset({"*"}))))
    assert told[b"access-control-allow-origin"] == b"*"
    assert b"vary" not in told
