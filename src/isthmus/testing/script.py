"""What a scripted upstream does with a request: answers as data, made by small functions.

In: bodies, chunks and controls. Out: `Answer`s, which the server only carries out. An answer is a list
of parts, taken one after another: bytes are sent, a number of seconds, an event or a `Gate` is waited for,
and `CUT`, `RESET` or `HANG` ends it badly. Parts in `before` come ahead of the status line.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Unpack

import msgspec

from isthmus.protocol.json import JsonObject
from isthmus.testing.replies import DONE, ChatAnswer, chat_chunks, chat_error, chat_reply, event
from isthmus.testing.signals import Gate

if TYPE_CHECKING:
    from isthmus.testing.requests import RecordedRequest


class Ending(enum.Enum):
    """The ways an answer can go wrong on the wire."""

    CUT = "cut"
    """Close the connection here, in good order for TCP, in the middle for HTTP."""
    RESET = "reset"
    """Tear the connection down (TCP RST)."""
    HANG = "hang"
    """Send nothing more and wait until the client leaves."""


CUT: Final = Ending.CUT
RESET: Final = Ending.RESET
HANG: Final = Ending.HANG

Wait = float | asyncio.Event | Gate
"""Seconds, an event of the server's own loop, or a gate (which works from any thread)."""

Part = bytes | Wait | Ending
Framing = Literal["length", "chunked", "close"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, exactly as it goes over the wire."""

    parts: tuple[Part, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Wait | Ending, ...] = ()
    framing: Framing = "length"
    """How the client learns where the body ends; `close` ends it with the connection, as HTTP/1.0 did."""
    slice: int | None = None
    """Send the body in pieces of so many bytes, each one a write (and a chunk) of its own."""


Handler = Callable[["RecordedRequest"], "Step | Awaitable[Step]"]
Step = Answer | JsonObject | list[JsonObject] | Handler
"""An answer; an object (a whole JSON reply); a list of chunks (a stream); or a function of the request."""


_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def reply(
    body: JsonObject | bytes | str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    after: Wait | None = None,
    slice: int | None = None,
) -> Answer:
    """A whole answer: an object is written as JSON, text is sent as plain text, bytes are called JSON as they are."""
    kind = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else msgspec.json.encode(body)
    return Answer((data,), status, _headers(kind, headers), _before(after), slice=slice)


def stream(
    parts: Iterable[JsonObject | Part],
    *,
    done: bool = True,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    after: Wait | None = None,
    slice: int | None = None,
    framing: Framing = "chunked",
) -> Answer:
    """An SSE answer: objects become events, everything else is sent or done as it stands.

    `done` adds `[DONE]`. Parts behind a `CUT`, `RESET` or `HANG` are never reached.
    """
    made: list[Part] = [event(part) if isinstance(part, dict) else part for part in parts]
    if done:
        made.append(DONE)
    return Answer(tuple(made), status, _headers("text/event-stream", headers), _before(after), framing, slice)


def chat(
    text: str | None = None, *, pieces: int = 3, slice: int | None = None, **answer: Unpack[ChatAnswer]
) -> Handler:
    """An answer in the mode the request asks for: chunks with `stream: true`, a whole reply without.

    Takes what `chat_reply` and `chat_chunks` take. The usage chunk is sent as scripted, whether or not
    the request asked for it: that is for the test to check.
    """

    def handle(request: RecordedRequest) -> Answer:
        if request.json.get("stream"):
            return stream(chat_chunks(text, pieces=pieces, **answer), slice=slice)
        return reply(chat_reply(text, **answer), slice=slice)

    return handle


def error(
    status: int, message: str = "scripted failure", *, code: str | None = None, retry_after: float | str | None = None
) -> Answer:
    """An HTTP error with OpenAI's error body, and `Retry-After` where given."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    body = chat_error(message, type=_ERROR_TYPES.get(status, "server_error"), code=code)
    return reply(body, status=status, headers=headers)


def html_error(status: int = 502, title: str = "Bad Gateway") -> Answer:
    """What a proxy in front of the provider says: a page, not JSON."""
    page = f"<html><head><title>{status} {title}</title></head><body><h1>{title}</h1></body></html>"
    return reply(page.encode(), status=status, headers={"Content-Type": "text/html"})


def malformed_json(status: int = 200) -> Answer:
    """A whole reply that breaks off inside its JSON, with a correct `Content-Length`."""
    return reply(b'{"id": "chatcmpl-1", "choices": [{"index": 0, "mess', status=status)


def drop(*, reset: bool = False) -> Answer:
    """Close the connection without a word, or reset it."""
    return Answer(before=(RESET if reset else CUT,))


def silence() -> Answer:
    """Accept the request and never answer."""
    return Answer(before=(HANG,))


def as_answer(step: Answer | JsonObject | list[JsonObject]) -> Answer:
    """The answer that a plain step stands for."""
    if isinstance(step, Answer):
        return step
    if isinstance(step, list):
        return stream(step)
    return reply(step)


def _headers(content_type: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    given = dict(headers or {})
    if any(name.lower() == "content-type" for name in given):
        return given
    return {"Content-Type": content_type, **given}


def _before(after: Wait | None) -> tuple[Wait, ...]:
    return () if after is None else (after,)
