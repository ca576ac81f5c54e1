"""A run → an SSE response, or one JSON object: watched, so that a client that leaves stops the upstream.

One companion task per request waits for the client's disconnect and, in streams, sends signs of life
while the upstream is silent: a repeated `response.in_progress` (clients' idle timers count events, not
comments) and a comment for proxies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from starlette.types import Receive, Send

from isthmus.bridge.sse import DONE, PING
from isthmus.gateway.run import Run
from isthmus.protocol.events import Event
from isthmus.protocol.response import FinishedResponse
from isthmus.server.http import ClientLeft, raw_headers
from isthmus.server.tell import plan_header

Encode = Callable[[list[Event]], bytes]
"""A batch of events as bytes on the wire."""

STREAM_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


@dataclass(frozen=True, slots=True)
class Pulse:
    """Seconds of silence after which a sign of life is sent; 0: never."""

    heartbeat: float = 15.0
    ping: float = 15.0

    @property
    def interval(self) -> float | None:
        return min((each for each in (self.heartbeat, self.ping) if each > 0), default=None)


class Connection:
    """One client: writes are serialised, silence is measured, its leaving stops the run."""

    def __init__(self, receive: Receive, send: Send, run: Run, pulse: Pulse, encode: Encode | None) -> None:
        self._receive = receive
        self._send = send
        self._run = run
        self._pulse = pulse
        self._encode = encode
        self._open = False
        self._busy = False
        self._last = asyncio.get_running_loop().time()
        self.left = False

    async def stream(self, *, done_after_failure: bool = True) -> None:
        """Send the run as a stream. A refusal before the first event is raised: it still has a status.

        A Responses stream always ends with `[DONE]`; a chat stream that failed ends with its error.
        """
        assert self._encode is not None
        companion = asyncio.create_task(self._accompany())
        try:
            async with aclosing(self._run.events()) as batches:
                async for batch in batches:
                    if self.left:
                        break
                    if not self._open:
                        await self._start()
                    await self._write(self._encode(batch))
        except asyncio.CancelledError:
            if self._run.abandoned:
                raise ClientLeft from None  # it is there, but it does not read
            if not self.left:
                raise
        finally:
            companion.cancel()
        if not self.left:
            failed = self._run.response is None or self._run.response["status"] in ("failed", "cancelled")
            done = b"" if failed and not done_after_failure else DONE
            await self._send({"type": "http.response.body", "body": done, "more_body": False})

    async def tell(self, events: list[Event]) -> None:
        """A whole stream at once: for a client that reads its failures there and not in a status."""
        assert self._encode is not None
        await self._start()
        await self._send({"type": "http.response.body", "body": self._encode(events) + DONE, "more_body": False})

    async def whole(self) -> FinishedResponse:
        """The whole answer; raises `ClientLeft` when nobody is there to get it."""
        companion = asyncio.create_task(self._accompany())
        try:
            return await self._run.fold()
        except asyncio.CancelledError:
            if self.left:
                raise ClientLeft from None
            raise
        finally:
            companion.cancel()

    async def _start(self) -> None:
        self._open = True
        headers = plan_header(self._run.plan)  # only now is it certain which attempt answers
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": raw_headers({**STREAM_HEADERS, **headers})}
        )

    async def _write(self, data: bytes) -> None:
        self._busy = True
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._busy = False
        self._last = asyncio.get_running_loop().time()

    async def _accompany(self) -> None:
        interval = self._pulse.interval if self._encode is not None else None
        while True:
            try:
                async with asyncio.timeout(interval):
                    message = await self._receive()
            except TimeoutError:
                await self._sign_of_life()
                continue
            if message["type"] == "http.disconnect":
                self.left = True
                self._run.stop("left")
                return

    async def _sign_of_life(self) -> None:
        silent = asyncio.get_running_loop().time() - self._last
        if not self._open or self._busy or self._encode is None:
            return  # not begun, or the client itself is slow
        data = b""
        if 0 < self._pulse.heartbeat <= silent + 0.05:
            event = self._run.heartbeat()
            data = self._encode([event]) if event is not None else b""
        if not data and 0 < self._pulse.ping <= silent + 0.05:
            data = PING
        if data:
            await self._write(data)


async def send_events(
    receive: Receive, send: Send, batches: AsyncIterator[list[bytes]], headers: Mapping[str, str], *, ping: float
) -> None:
    """Stored events, told again as they are. While a followed run is silent, comments show that we are there.

    The run belongs to nobody in particular: a follower that leaves only stops following.
    """
    await send({"type": "http.response.start", "status": 200, "headers": raw_headers({**STREAM_HEADERS, **headers})})
    leaving = asyncio.create_task(_left(receive))
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


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
