"""The small pieces of HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from isthmus.errors import RequestRefused
from isthmus.server.http import header, new_request_id, raw_headers, send_bytes, send_error, send_json


def sent_by(sending: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(sending(send))
    return messages


def test_an_answer_says_how_long_it_is() -> None:
    start, body = sent_by(lambda send: send_json(send, 201, {"a": "ä"}, {"x-more": "1"}))
    assert start["status"] == 201
    assert dict(start["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": b"10",
        b"x-more": b"1",
    }
    assert body["body"] == '{"a":"ä"}'.encode()


def test_other_kinds_are_named() -> None:
    start, _ = sent_by(lambda send: send_bytes(send, 200, b"x", kind="text/plain"))
    assert (b"content-type", b"text/plain") in start["headers"]


def test_an_error_brings_its_status_and_its_headers() -> None:
    error = RequestRefused("no", code="request_timeout")
    start, body = sent_by(lambda send: send_error(send, error, {"allow": "GET"}))
    assert start["status"] == 408
    assert {b"allow": b"GET", b"connection": b"close"}.items() <= dict(start["headers"]).items()
    assert b'"code":"request_timeout"' in body["body"]


def test_a_header_that_cannot_travel_is_made_to() -> None:
    assert raw_headers({"x": "a→b"}) == [(b"x", b"a?b")]


def test_the_first_of_several_headers_counts() -> None:
    scope = {"headers": [(b"a", b"1"), (b"a", b"2")]}
    assert (header(scope, b"a"), header(scope, b"b")) == ("1", "")


def test_the_list_of_headers_is_gone_through_once() -> None:
    class Headers(list[tuple[bytes, bytes]]):
        gone_through = 0

        def __reversed__(self) -> Any:
            self.gone_through += 1
            return super().__reversed__()

        def __iter__(self) -> Any:
            self.gone_through += 1
            return super().__iter__()

    scope = {"headers": Headers([(b"a", b"1"), (b"b", b"2")])}
    assert [header(scope, name) for name in (b"a", b"b", b"c", b"a")] == ["1", "2", "", "1"]
    assert scope["headers"].gone_through == 1


def test_request_ids_do_not_repeat() -> None:
    ids = {new_request_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(id.startswith("req_") and len(id) == 28 for id in ids)
