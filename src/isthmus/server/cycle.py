"""One request on its connection and the answer to it, as ASGI has it: what came of its body, and what goes back.

Worth knowing: it stands in the scope of its request (`leaving_of`), for those who need more than ASGI offers: a body
that is here already is taken at once, a client that goes is told, and a piece of a stream is written without a message
and, where the client reads, without a wait. It never refers to its scope: what a request was is forgotten with it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, cast

from starlette.types import Message, Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from isthmus.server.leaving import Leaving

log = logging.getLogger("uvicorn.error")

App = Callable[[Scope, Any, Any], Awaitable[None]]
_BROKEN: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What would end a header, and begin another."""
_BODILESS: Final = (204, 304)
_INTERNAL: Final = b"Internal Server Error"


class _Sent:
    """Awaited at once: there is nothing to wait for."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return _NOTHING


_NOTHING: Final = cast("Generator[Any, None, None]", iter(()))
SENT: Final = _Sent()


class Flow(FlowControl):
    """Uvicorn's, without an `Event` for everybody who never has to be waited for: it takes a kilobyte."""

    __slots__ = ("_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False
        self._writable: asyncio.Event | None = None

    async def drain(self) -> None:
        if self.write_paused:
            self._writable = self._writable or asyncio.Event()
            await self._writable.wait()

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None


class Cycle(Leaving):
    __slots__ = (
        *("_chunked", "_expects", "_flow", "_left", "_news", "_over", "_pieces", "_sends_body", "_transport"),
        *("fresh", "keep_alive", "more_body", "response_complete", "response_started"),
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        flow: FlowControl,
        over: Callable[[], None],
        *,
        sends_body: bool,
        keep_alive: bool,
        expects: bool,
    ) -> None:
        """`over` is called when the answer is whole. `sends_body`: it was not asked for its head alone. `expects`: the
        client waits to be told to go on."""
        super().__init__()
        self._transport = transport
        self._flow = flow
        self._over: Callable[[], None] | None = over
        self._sends_body = sends_body
        self._expects = expects
        self.keep_alive = keep_alive
        self._pieces: list[bytes] = []
        self.more_body = True
        self.fresh = False
        """Whether something came since it was last asked for."""
        self._news: asyncio.Event | None = None
        self._chunked = False
        self._left = 0
        """Bytes of the answer that were announced, and are still to come."""
        self.response_started = False
        self.response_complete = False

    async def run(self, app: App, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
        except BaseException as error:
            log.error("Exception in ASGI application\n", exc_info=error)
            self._give_up()
        else:
            if not self.response_complete and not self.gone:
                log.error("ASGI callable returned without a whole answer.")
                self._give_up()
        finally:
            self._over = None  # the connection refers to us: whoever is gone is not to wait for the collector

    # ── what comes ─────────────────────────────────────────────────────────────────────────────────

    def come(self, piece: bytes) -> int:
        """A piece of the body; out: how many bytes wait to be taken."""
        self._pieces.append(piece)
        self.wake()
        return len(piece) if len(self._pieces) == 1 else sum(map(len, self._pieces))

    def wake(self) -> None:
        self.fresh = True
        if self._news is not None:
            self._news.set()

    @property
    def whole(self) -> bool:
        """Whether all of the body is here, and may be taken."""
        return not (self.more_body or self._expects or self.gone)

    def take(self) -> bytes:
        """What is here of the body and was not taken yet."""
        pieces, self._pieces = self._pieces, []
        self.fresh = False
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def receive(self) -> Message:
        if self._expects and not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._expects = False
        if not self.gone and not self.response_complete:
            self._flow.resume_reading()
            if not self.fresh:
                self._news = self._news or asyncio.Event()
                self._news.clear()
                await self._news.wait()
        if self.gone or self.response_complete:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self.take(), "more_body": self.more_body}

    def tell(self) -> None:
        super().tell()
        self.wake()

    # ── what goes ──────────────────────────────────────────────────────────────────────────────────

    def send(self, message: Message) -> Awaitable[None]:
        if self._flow.write_paused and not self.gone:
            return self._later(lambda: self._send(message))
        self._send(message)
        return SENT

    def answer(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Awaitable[None]:
        """All of an answer, its length among the headers, in one write."""
        if self._flow.write_paused and not self.gone:
            return self._later(lambda: self._answer(status, headers, body))
        self._answer(status, headers, body)
        return SENT

    def put(self, data: bytes) -> Awaitable[None] | None:
        """More of an answer that was begun and has no length; `None`: there is nothing to wait for."""
        if self.gone or not data:  # an empty chunk would be the end
            return None
        if self._flow.write_paused:
            return self._later(lambda: self._put(data))
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return None

    async def _later(self, send: Callable[[], None]) -> None:
        await self._flow.drain()
        if not self.gone:
            send()

    def _send(self, message: Message) -> None:
        if self.gone:
            return
        if message["type"] == "http.response.start":
            self._transport.write(self._head(message["status"], message["headers"]))
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if not self.response_started or self.response_complete:
            raise RuntimeError(f"`{message['type']}` before the answer was begun, or after its end")
        if body and self._sends_body:
            self._put(body)
        if not more:
            if self._chunked:
                self._transport.write(b"0\r\n\r\n")
            self._end()

    def _answer(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        if self.gone:
            return
        head = self._head(status, headers)
        self._left -= len(body)
        self._transport.write(head + body if self._sends_body else head)
        self._end()

    def _put(self, data: bytes) -> None:
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        else:
            self._left -= len(data)
        self._transport.write(data)

    def _head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        if self.response_started:
            raise RuntimeError("the answer was begun already")
        lines = [b"%b: %b" % each for each in headers]
        if _BROKEN.search(b"".join(lines)):
            raise RuntimeError("a header of the answer would break it")
        known = dict(headers)
        length = known.get(b"content-length")
        if known.get(b"connection") == b"close":
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close")
        if length is not None:
            self._left = int(length)
        elif self._sends_body and status not in _BODILESS:
            self._chunked = True
            lines.append(b"transfer-encoding: chunked")
        lines.append(b"\r\n")
        self.response_started, self._expects = True, False
        return STATUS_LINE[status] + b"\r\n".join(lines)

    def _end(self) -> None:
        if self._left and self._sends_body:
            raise RuntimeError("the answer is not as long as its head says")
        self.response_complete = True
        self.wake()
        if not self.keep_alive:
            self._transport.close()
        if self._over is not None:
            self._over()

    def _give_up(self) -> None:
        """Whoever had to answer did not."""
        if self.response_started:
            self._transport.close()
        else:
            kind = (b"content-type", b"text/plain; charset=utf-8")
            self._answer(500, [kind, (b"content-length", b"21"), (b"connection", b"close")], _INTERNAL)
