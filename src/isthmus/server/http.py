"""The few pieces of HTTP that every route needs: bounded bodies, JSON answers, request ids."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.errors import IsthmusError, RequestRefused
from isthmus.server.errors import error_body, error_headers

JSON: Final = "application/json"
SLOWEST_BODY: Final = 10_000
"""Bytes a second of the slowest client that is waited for."""
_encode: Final = msgspec.json.Encoder().encode


class ClientLeft(Exception):
    """The client closed the connection before its request was whole."""


async def read_body(scope: Scope, receive: Receive, limit: int, patience: float) -> bytes:
    """The whole body, never more than `limit` bytes of it.

    It has `patience` seconds, and more as it comes, at the pace of a slow line: neither silence nor a trickle holds
    a place here for ever.
    """
    declared = header(scope, b"content-length")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience) as clock:
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
                deadline = clock.when()
                assert deadline is not None
                clock.reschedule(deadline + len(piece) / SLOWEST_BODY)
    except TimeoutError as error:
        raise RequestRefused(
            f"the request body stopped after {size} bytes; send it whole, at {SLOWEST_BODY} bytes a second or faster",
            code="request_timeout",
        ) from error


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
    await send_json(send, error.meaning.status, error_body(error), {**(headers or {}), **error_headers(error)})


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


def header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def new_request_id() -> str:
    return "req_" + secrets.token_hex(12)
