"""The few pieces of HTTP that every route needs: headers, JSON answers, request ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.types import Scope, Send

from isthmus.chance import random_text
from isthmus.errors import IsthmusError
from isthmus.server.errors import anthropic_error, error_body, error_headers

JSON: Final = "application/json"
_INDEX: Final = "isthmus.headers"
"""In a scope: its headers by their names."""
RawHeaders = list[tuple[bytes, bytes]]
_encode: Final = msgspec.json.Encoder().encode


class ClientLeft(Exception):
    """The client closed the connection before its request was whole."""


async def send_json(send: Send, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
    await send_bytes(send, status, _encode(value), headers=headers)


async def send_bytes(
    send: Send, status: int, body: bytes, *, kind: str = JSON, headers: Mapping[str, str] | None = None
) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": raw_headers({"content-type": kind, "content-length": str(len(body)), **(headers or {})}),
        }
    )
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
    index = scope.get(_INDEX)
    if index is None:
        index = scope[_INDEX] = dict(reversed(scope["headers"]))
    value = index.get(name)
    return "" if value is None else str(value, "latin-1")


def new_request_id() -> str:
    return f"req_{random_text()[:24]}"
