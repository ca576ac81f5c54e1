"""The few pieces of HTTP that every route needs: bounded bodies, JSON answers, request ids."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.errors import IsthmusError, RequestRefused
from isthmus.server.errors import error_body, error_headers, status_of

JSON: Final = "application/json"
_encode: Final = msgspec.json.Encoder().encode


class ClientLeft(Exception):
    """The client closed the connection before its request was whole."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, never more than `limit` bytes of it."""
    declared = header(scope, b"content-length")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_large(limit: int) -> RequestRefused:
    return RequestRefused(
        f"the request body is larger than {limit} bytes; send less, or raise `server.max_body`",
        code="payload_too_large",
    )


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


async def send_error(send: Send, error: IsthmusError, headers: Mapping[str, str] | None = None) -> None:
    await send_json(send, status_of(error), error_body(error), {**(headers or {}), **error_headers(error)})


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


def header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def new_request_id() -> str:
    return "req_" + secrets.token_hex(12)
