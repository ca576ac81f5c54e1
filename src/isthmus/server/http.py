"""The few pieces of HTTP that every route needs: headers, JSON answers, request ids."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.types import Scope, Send

from isthmus.chance import random_text
from isthmus.errors import IsthmusError
from isthmus.server.errors import anthropic_error, error_body, error_headers

JSON: Final = "application/json"
HEADERS: Final = "isthmus.headers"
"""In a scope: its headers by their names."""
RawHeaders = list[tuple[bytes, bytes]]
_encode: Final = msgspec.json.Encoder().encode


class ClientLeft(Exception):
    """The client closed the connection before its request was whole."""


async def send_json(send: Send, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
    await send_bytes(send, status, _encode(value), headers=headers)


def send_bytes(
    send: Send, status: int, body: bytes, *, kind: str = JSON, headers: Mapping[str, str] | None = None
) -> Awaitable[None]:
    """To be awaited like a coroutine. In one piece, where whoever sends knows of such (`Answer.whole`)."""
    told = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(body)), *raw_headers(headers or {})]
    whole: Callable[[int, RawHeaders, bytes], Awaitable[None]] | None = getattr(send, "whole", None)
    return send_in_two(send, status, told, body) if whole is None else whole(status, told, body)


async def send_in_two(send: Send, status: int, headers: RawHeaders, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_error(
    send: Send, error: IsthmusError, headers: Mapping[str, str] | None = None, *, specified: bool = False
) -> None:
    body = error_body(error, specified=specified)
    await send_json(send, error.meaning.status, body, {**(headers or {}), **error_headers(error)})


async def send_anthropic_error(
    send: Send, error: IsthmusError, request_id: str, headers: Mapping[str, str] | None = None
) -> None:
    status, body = anthropic_error(error, request_id)
    await send_json(send, status, body, {**(headers or {}), **error_headers(error)})


def raw_headers(headers: Mapping[str, str]) -> RawHeaders:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


def header(scope: Scope, name: bytes) -> str:
    """The first of that name: a request is asked for a dozen of them, and its list is gone through once."""
    index = scope.get(HEADERS)
    value = (headers_of(scope) if index is None else index).get(name)
    return "" if value is None else str(value, "latin-1")


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The first of each name."""
    index: dict[bytes, bytes] | None = scope.get(HEADERS)
    if index is None:
        index = scope[HEADERS] = by_name(scope["headers"])
    return index


def by_name(headers: RawHeaders) -> dict[bytes, bytes]:
    return dict(reversed(headers))


def new_request_id() -> str:
    return f"req_{random_text()[:24]}"
