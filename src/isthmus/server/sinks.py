"""How a run is told over HTTP: as one JSON object, or as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from starlette.types import Receive, Send

from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.bridge.sse import DONE, PING
from isthmus.conduct.aside import Aside
from isthmus.conduct.run import Run
from isthmus.errors import BY_HOOKS
from isthmus.protocol.events import Event
from isthmus.protocol.large import encode_sized
from isthmus.protocol.response import FinishedResponse, weigh_response
from isthmus.server.cycle import Cycle
from isthmus.server.http import ClientLeft, raw_headers, send_bytes
from isthmus.server.leaving import Leaving
from isthmus.server.tell import run_headers

Encode = Callable[[list[Event], int], bytes]
"""A batch of events as bytes on the wire; of a large one, alone, about how many."""
_PIECE: Final = 262_144
"""Bytes of a large event that are handed over at a time: more would wait in memory for a client that is slow."""

STREAM_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


class _Http:
    __slots__ = ("_aside", "_receive", "_send", "leaving")
    beats = False
    whole = False

    def __init__(self, receive: Receive, send: Send, aside: Aside, leaving: Leaving | None) -> None:
        """`leaving`: the client's connection, where it tells of that; else `http.disconnect` is waited for."""
        self._receive = receive
        self._send = send
        self._aside = aside
        self.leaving = leaving

    def left(self) -> Awaitable[None]:
        return has_left(self._receive)

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _start(self, headers: Mapping[str, str]) -> None:
        start = {"type": "http.response.start", "status": 200}
        await self._send({**start, "headers": raw_headers({**STREAM_HEADERS, **headers})})


class JsonSink(_Http):
    """The whole answer at once: its events are not looked at."""

    __slots__ = ("_render",)
    whole = True

    def __init__(
        self,
        receive: Receive,
        send: Send,
        render: Callable[[FinishedResponse], Any],
        aside: Aside,
        leaving: Leaving | None = None,
    ) -> None:
        super().__init__(receive, send, aside, leaving)
        self._render = render

    def write(self, run: Run, events: list[Event]) -> None:
        pass

    async def alive(self, event: Event | None) -> None:
        pass

    async def end(self, run: Run) -> None:
        assert run.response is not None
        if run.failure is not None and run.failure.code in BY_HOOKS:
            raise run.failure  # nothing was told: it still has its status
        answer = self._render(run.response)
        data = run.written if answer is run.response else None  # told as it is kept, byte for byte
        if data is None:
            size = weigh_response(run.response)
            data = await self._aside.do(lambda: encode_sized(answer, size), heavy=size > HEAVY_TEXT)
        await send_bytes(self._send, 200, data, headers=run_headers(run))


class SseSink(_Http):
    """A stream: the status line is sent with the first events, so that a refusal before them has its own."""

    __slots__ = ("_encode", "_open", "_put")
    beats = True
    done_after_failure = True

    def __init__(
        self, receive: Receive, send: Send, encode: Encode, aside: Aside, leaving: Leaving | None = None
    ) -> None:
        super().__init__(receive, send, aside, leaving)
        self._encode = encode
        self._open = False
        self._put: Callable[[bytes], Awaitable[None] | None] | None = None
        """Once it is open: the connection's own way to write a piece."""

    def write(self, run: Run, events: list[Event]) -> Awaitable[None] | None:
        if self._put is None or run.response is not None:
            return self._write(run, events)
        return self._put(self._encode(events, 0))

    async def _write(self, run: Run, events: list[Event]) -> None:
        # The first events repeat the request, the last ones everything that was said, several times over.
        size = weigh_response(run.response) if run.response is not None else 0 if self._open else run.plan.size
        if not self._open:
            self._open = True
            await self._start(run_headers(run))  # only now is it certain which attempt answers
            self._put = self.leaving.put if isinstance(self.leaving, Cycle) else None
        if size > HEAVY_TEXT:
            await self._write_large(events, size)
            return
        await self._send({"type": "http.response.body", "body": self._encode(events, 0), "more_body": True})

    async def _write_large(self, events: list[Event], size: int) -> None:
        """One by one: five of them hold the same 16 MB, and whoever reads slowly does not need them all at once."""
        for event in events:
            data = await self._aside.do(partial(self._encode, [event], size), heavy=True)
            for start in range(0, len(data), _PIECE):
                await self._body(data[start : start + _PIECE])

    async def alive(self, event: Event | None) -> None:
        await self._body((self._encode([event], 0) if event is not None else b"") or PING)

    async def end(self, run: Run) -> None:
        failed = run.response is None or run.response["status"] in ("failed", "cancelled")
        await self._body(b"" if failed and not self.done_after_failure else DONE, more=False)


class ChatSink(SseSink):
    """A chat stream has no event that says nothing, and one that failed ends with its error, not with `[DONE]`."""

    __slots__ = ()
    beats = False
    done_after_failure = False


class MessagesSink(SseSink):
    """A Messages stream ends with an event of its own; its sign of life is one as well."""

    __slots__ = ()

    async def end(self, run: Run) -> None:
        await self._body(b"", more=False)


async def send_events(
    receive: Receive, send: Send, batches: AsyncIterator[list[bytes]], headers: Mapping[str, str], *, ping: float
) -> None:
    """Stored events, told again as they are. While a followed run is silent, comments show that we are there.

    The run belongs to nobody in particular: a follower that leaves only stops following.
    """
    await send({"type": "http.response.start", "status": 200, "headers": raw_headers({**STREAM_HEADERS, **headers})})
    leaving = asyncio.create_task(has_left(receive))
    reading = asyncio.ensure_future(anext(batches, None))
    try:
        while True:
            await asyncio.wait((reading, leaving), timeout=ping or None, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                batch = reading.result()
                if batch is None:
                    break
                await send({"type": "http.response.body", "body": b"".join(batch), "more_body": True})
                reading = asyncio.ensure_future(anext(batches, None))
            elif leaving.done():
                raise ClientLeft
            else:
                await send({"type": "http.response.body", "body": PING, "more_body": True})
    finally:
        leaving.cancel()
        reading.cancel()
        await asyncio.wait((leaving, reading))
    await send({"type": "http.response.body", "body": DONE, "more_body": False})


async def has_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
