"""How a run is told over HTTP: as one JSON object, or as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.types import Receive, Send

from isthmus.bridge.sse import DONE, PING
from isthmus.conduct.run import Run
from isthmus.protocol.events import Event
from isthmus.protocol.response import FinishedResponse
from isthmus.server.http import ClientLeft, raw_headers, send_json
from isthmus.server.leaving import Leaving
from isthmus.server.tell import plan_header

Encode = Callable[[list[Event]], bytes]
"""A batch of events as bytes on the wire."""

STREAM_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


class _Http:
    beats = False
    whole = False
    leaving: Leaving | None = None

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    def left(self) -> Awaitable[None]:
        return has_left(self._receive)

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _start(self, headers: Mapping[str, str]) -> None:
        start = {"type": "http.response.start", "status": 200}
        await self._send({**start, "headers": raw_headers({**STREAM_HEADERS, **headers})})


class JsonSink(_Http):
    """The whole answer at once: its events are not looked at."""

    whole = True

    def __init__(
        self,
        receive: Receive,
        send: Send,
        render: Callable[[FinishedResponse], Any],
        leaving: Leaving | None = None,
    ) -> None:
        super().__init__(receive, send)
        self._render = render
        self.leaving = leaving

    async def write(self, run: Run, events: list[Event]) -> None:
        pass

    async def alive(self, event: Event | None) -> None:
        pass

    async def end(self, run: Run) -> None:
        assert run.response is not None
        await send_json(self._send, 200, self._render(run.response), plan_header(run.plan))


class SseSink(_Http):
    """A stream: the status line is sent with the first events, so that a refusal before them has its own."""

    beats = True
    done_after_failure = True

    def __init__(self, receive: Receive, send: Send, encode: Encode) -> None:
        super().__init__(receive, send)
        self._encode = encode
        self._open = False

    async def write(self, run: Run, events: list[Event]) -> None:
        if not self._open:
            self._open = True
            await self._start(plan_header(run.plan))  # only now is it certain which attempt answers
        await self._send({"type": "http.response.body", "body": self._encode(events), "more_body": True})

    async def alive(self, event: Event | None) -> None:
        await self._body((self._encode([event]) if event is not None else b"") or PING)

    async def end(self, run: Run) -> None:
        failed = run.response is None or run.response["status"] in ("failed", "cancelled")
        await self._body(b"" if failed and not self.done_after_failure else DONE, more=False)


class ChatSink(SseSink):
    """A chat stream has no event that says nothing, and one that failed ends with its error, not with `[DONE]`."""

    beats = False
    done_after_failure = False


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
