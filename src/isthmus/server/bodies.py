"""Request bodies: read whole before a request takes a place, within a size, a time, a pace, and a sum.

A body has `body_timeout` seconds, and more as it comes, at the pace of the slowest client that is waited for: neither
silence nor a trickle goes on for ever. All bodies that are still coming share one sum; when it is spent, the one that
has been under way the longest is given up, so that half-sent bodies never keep out a whole one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from starlette.types import Receive, Scope

from isthmus.config.schema import Server
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.server.cycle import Cycle
from isthmus.server.encoding import Decoder, find_decoder
from isthmus.server.errors import overloaded
from isthmus.server.http import ClientLeft, header
from isthmus.server.leaving import leaving_of

BODY: Final = "isthmus.body"
Body = bytes | bytearray


def body_of(scope: Scope) -> Body:
    """What was read before the handler was called; once: it is not kept for as long as a stream lasts."""
    body: Body = scope.pop(BODY)
    return body


class _Coming:
    """A body under way."""

    __slots__ = ("clock", "crowded_out", "data", "received")

    def __init__(self, clock: asyncio.Timeout) -> None:
        self.clock = clock
        self.data = bytearray()
        """Grown in place, not put together at the end: that would take a moment of everybody, and twice the room."""
        self.received = 0
        """Its bytes before they were decoded."""
        self.crowded_out = False


class Bodies:
    def __init__(self, limits: Server) -> None:
        self._limits = limits
        self._coming: dict[_Coming, int] = {}
        """How much is here of each that is not whole, the oldest first."""
        self._held = 0

    def at_once(self, scope: Scope) -> bytes | None:
        """The whole body, where it is here already and as it was meant, as most are; else `read` waits for it."""
        cycle = leaving_of(scope)
        if not isinstance(cycle, Cycle) or not cycle.whole or header(scope, b"content-encoding"):
            return None
        body = cycle.take()
        if len(body) > self._limits.max_body:
            raise too_large(self._limits.max_body)
        return body

    async def read(self, scope: Scope, receive: Receive) -> bytearray:
        """The whole body, decoded."""
        decoder = find_decoder(header(scope, b"content-encoding"))
        declared = header(scope, b"content-length")
        if declared.isdigit() and int(declared) > self._limits.max_body:
            raise too_large(self._limits.max_body)
        clock = asyncio.timeout(self._limits.body_timeout)
        body = _Coming(clock)
        try:
            async with clock:
                await self._take(body, receive, decoder)
        except TimeoutError as error:
            raise self._given_up(body) from error
        finally:
            self._held -= self._coming.pop(body, 0)
        return body.data

    async def _take(self, body: _Coming, receive: Receive, decoder: Decoder | None) -> None:
        limit = self._limits.max_body
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            piece = message.get("body", b"")
            body.received += len(piece)
            parts: Iterable[bytes] = (piece,) if decoder is None else decoder.feed(piece)
            for part in parts:
                if max(len(body.data) + len(part), body.received) > limit:
                    raise too_large(limit)
                body.data += part
                if decoder is not None:
                    await asyncio.sleep(0)  # a small piece may become a large one: others have their turn
            if not message.get("more_body"):
                if decoder is not None:
                    decoder.end()
                return
            self._hold(body)
            deadline = body.clock.when()
            assert deadline is not None
            if not body.crowded_out:
                body.clock.reschedule(deadline + len(piece) / self._limits.min_body_rate)

    def _hold(self, body: _Coming) -> None:
        """Count what is here of a body; where it is too much for all of them, the oldest go."""
        self._held += len(body.data) - self._coming.get(body, 0)
        self._coming[body] = len(body.data)
        while self._held > self._limits.max_bodies:
            oldest = next(iter(self._coming))
            self._held -= self._coming.pop(oldest)
            oldest.crowded_out = True
            oldest.clock.reschedule(asyncio.get_running_loop().time())

    def _given_up(self, body: _Coming) -> IsthmusError:
        if body.crowded_out:
            return overloaded("too many request bodies are under way (`server.max_bodies`)")
        return too_slow(body.received, self._limits)


def too_slow(received: int, limits: Server) -> RequestRefused:
    return RequestRefused(
        f"the request body stopped after {received} bytes; send it whole, at {limits.min_body_rate} bytes a second or "
        "faster",
        code="request_timeout",
    )


def too_large(limit: int) -> RequestRefused:
    return RequestRefused(
        f"the request body is larger than {limit} bytes; send less, or raise `server.max_body`",
        code="payload_too_large",
    )
