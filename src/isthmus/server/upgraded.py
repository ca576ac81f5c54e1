"""One client's connection once it speaks WebSocket: uvicorn's, with bounds on everything that comes and goes.

The handshake is read by `Connection`, within its limits; this begins behind it. A message has a size, a time and a
pace, as a request body has, and all that are still coming share one sum. A client that asks for pongs and reads none
gets none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Protocol

import msgspec
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame, Opcode

from isthmus.config.schema import Server
from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.server.bodies import too_large, too_slow
from isthmus.server.connection import SOCKET
from isthmus.server.errors import overloaded
from isthmus.server.frames import error_frame
from isthmus.server.http import ClientLeft

log = logging.getLogger("isthmus.server")

MAX_FRAGMENTS: Final = 1024
"""Fragments of one message."""
_LINGER: Final = 1.0
"""Seconds for which a client that is sent away is listened to, and nothing of it is read."""
_encode: Final = msgspec.json.Encoder().encode


class Serving(Protocol):
    """Whoever answers what comes over it."""

    @property
    def busy(self) -> bool: ...


class Coming:
    """Messages that are not whole, of all sockets: the oldest is given up where they take too much."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Upgraded, int] = {}
        self.size = 0

    def count(self, who: Upgraded, size: int) -> None:
        self.size += size - self._held.get(who, 0)
        if size:
            self._held[who] = size
        else:
            self._held.pop(who, None)
        while self.size > self._most:
            oldest = next(iter(self._held))
            self.count(oldest, 0)
            oldest.send_away(
                CloseCode.TRY_AGAIN_LATER, overloaded("too many messages are under way (`server.max_bodies`)")
            )


class Upgraded(WebSocketsSansIOProtocol):
    limits: ClassVar[Server] = Server()
    remembers = True
    coming: ClassVar[Coming] = Coming(Server().max_bodies)
    serving: Serving | None = None
    _clock: asyncio.TimerHandle | None = None
    _deaf = False
    _due = 0.0
    """When the message that is coming must be whole."""

    @classmethod
    def within(cls, limits: Server) -> type[Upgraded]:
        return type(cls.__name__, (cls,), {"limits": limits, "coming": Coming(limits.max_bodies)})

    @property
    def owes(self) -> bool:
        """Whether we wait for the client, not the client for us."""
        return self.serving is not None and not self.serving.busy

    def push_out(self) -> None:
        self.send_away(CloseCode.TRY_AGAIN_LATER, overloaded("all connections are in use (`server.max_connections`)"))

    def begin(self, key: bytes, facts: dict[str, Any]) -> None:
        """The handshake was read and is one: `facts` are what it said."""
        lines = (b"GET / HTTP/1.1", b"host: -", b"upgrade: websocket", b"connection: upgrade")
        # Only what the answer is made of: our own limits on a head are the ones that hold.
        said = (*lines, b"sec-websocket-version: 13", b"sec-websocket-key: " + key)
        super().data_received(b"\r\n".join(said) + b"\r\n\r\n")
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope.update(facts)
        scope[SOCKET] = self

    # ── what comes ─────────────────────────────────────────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return  # what still comes is not read
        super().data_received(data)
        self._watch(len(data))

    def _watch(self, came: int) -> None:
        held = len(self.conn.reader.buffer) + sum(map(len, self.frames))
        self.coming.count(self, held)
        if len(self.frames) > MAX_FRAGMENTS:
            self.send_away(CloseCode.MESSAGE_TOO_BIG, too_large(self.limits.max_body))
        elif not held and not self.frames:
            self._stop_clock()
        elif self._clock is None:
            self._due = self.loop.time() + self.limits.body_timeout
            self._clock = self.loop.call_at(self._due, self._too_slow)
        else:
            self._due += came / self.limits.min_body_rate

    def _too_slow(self) -> None:
        self._clock = None
        if self.loop.time() < self._due:
            self._clock = self.loop.call_at(self._due, self._too_slow)
        else:
            self.send_away(CloseCode.POLICY_VIOLATION, too_slow(len(self.conn.reader.buffer), self.limits))

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def handle_ping(self) -> None:
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(pong)

    def handle_parser_exception(self) -> None:
        """The library has a close frame ready; one that was too large is told why, too."""
        closing = self.conn.close_sent
        code = CloseCode.PROTOCOL_ERROR if closing is None else closing.code
        self.send_away(code, too_large(self.limits.max_body) if code == CloseCode.MESSAGE_TOO_BIG else None)

    # ── what goes ──────────────────────────────────────────────────────────────────────────────────

    async def write(self, texts: Sequence[bytes]) -> None:
        """Messages; waits while the client does not read. Raises `ClientLeft`."""
        await self.writable.wait()
        if self.disconnected or self.close_sent:
            raise ClientLeft
        try:
            for text in texts:
                self.conn.send_text(text)
        except InvalidState as error:
            raise ClientLeft from error
        self.transport.write(b"".join(self.conn.data_to_send()))

    def send_away(self, code: int, error: IsthmusError | None = None) -> None:
        """Close over something that came, or does not come: nothing more is read. The client has a moment to see what
        it was told: the kernel throws that away where a connection is closed with bytes that nobody has read."""
        if self._close(code, error):
            self._deaf = True
            if self.transport.can_write_eof():
                self.transport.write_eof()
            else:
                self.transport.close()

    def say_goodbye(self, error: IsthmusError) -> None:
        """Close because we are done; the client's own goodbye is waited for, for a moment."""
        self._close(CloseCode.GOING_AWAY, error)

    def _close(self, code: int, error: IsthmusError | None) -> bool:
        """Tell why, and close. Nothing waits here for a client that does not read."""
        if self.close_sent or self.transport.is_closing():
            return False
        if error is not None:
            tell(log, "info", "socket.sent_away", client=self.client, code=error.code, reason=error.message)
            self.transport.write(Frame(Opcode.TEXT, _encode(error_frame(error))).serialize(mask=False))
        if self.conn.close_sent is None:
            self.conn.send_close(code)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.stop_keepalive()
        self._stop_clock()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code})
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_LINGER, self.transport.close)
        return True

    # ── its end ────────────────────────────────────────────────────────────────────────────────────

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self.coming.count(self, 0)
        super().connection_lost(exc)
