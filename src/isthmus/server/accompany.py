"""A run and whoever reads it: watched, so that a client that leaves stops the upstream.

In: a run and a `Sink`. One companion task per request waits for the client's leaving and asks the sink for signs of
life while the upstream is silent. Nothing here knows how a sink speaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Protocol

from isthmus.conduct.run import Run
from isthmus.config.schema import Server
from isthmus.protocol.events import Event
from isthmus.server.http import ClientLeft
from isthmus.server.leaving import Leaving


class Sink(Protocol):
    """One client's end of a run. Only one of its methods but `left` is called at a time."""

    beats: bool
    """Whether it knows an event that says nothing, and can be told so; if not, only comments show that we live."""
    whole: bool
    """It takes the answer at its end only: nothing is written, and nothing shows that we live."""

    leaving: Leaving | None
    """Tells when the client goes, where the connection does; else `left` is waited for."""

    async def write(self, run: Run, events: list[Event]) -> None:
        """Hand a batch over; waits while the client is slow. Nothing was told before the first one."""

    async def alive(self, event: Event | None) -> None:
        """A sign of life: the event if there is one, else a comment."""

    async def end(self, run: Run) -> None:
        """The run is over, and all of it was written."""

    def left(self) -> Awaitable[None]:
        """Done when the client is gone."""


async def accompany(run: Run, sink: Sink, pulse: Server) -> None:
    """Read the run to its end into the sink. Raises what fails before anything was told, and `ClientLeft`."""
    company, leaving = _Company(run, sink, pulse), sink.leaving if sink.whole else None
    companion = asyncio.create_task(company.watch()) if leaving is None else None
    if leaving is not None:
        leaving.then(company.go)
    try:
        if sink.whole:
            await run.fold()
        else:
            await company.write_all()
    except asyncio.CancelledError:
        if run.abandoned or company.left:
            raise company.farewell from None  # gone, or there but not reading
        raise
    finally:
        if companion is not None:
            companion.cancel()
        if leaving is not None:
            leaving.then(None)
    if company.left:
        raise company.farewell
    await sink.end(run)


class _Company:
    def __init__(self, run: Run, sink: Sink, pulse: Server) -> None:
        self._run = run
        self._sink = sink
        self._pulse = pulse
        self._open = False
        self._busy = False
        self._last = asyncio.get_running_loop().time()
        self._signing: asyncio.Event | None = None
        """Set when the sign of life that is under way was given."""
        self.left = False
        self.farewell: Exception = ClientLeft()
        """Why nothing more is told to a client that is gone."""

    async def write_all(self) -> None:
        run, write, now = self._run, self._sink.write, asyncio.get_running_loop().time
        async with aclosing(run.events()) as batches:
            async for batch in batches:
                if self.left:
                    raise self.farewell
                if self._signing is not None:
                    await self._signing.wait()
                self._busy = True
                await write(run, batch)
                self._busy, self._open = False, True
                self._last = now()

    async def watch(self) -> None:
        interval = self._interval()
        try:
            while not self.left:
                try:
                    if interval is None:
                        await self._sink.left()
                    else:
                        async with asyncio.timeout(interval):
                            await self._sink.left()
                    self.left = True
                except TimeoutError:
                    await self._sign_of_life()
        except Exception as error:  # as if it had risen while something was written
            self.farewell = error
        self.go()

    def go(self) -> None:
        """The client is gone, or as good as."""
        self.left = True
        self._run.stop("left")

    def _interval(self) -> float | None:
        """Seconds of silence after which a sign of life may be due; `None`: never."""
        beat = self._pulse.heartbeat if self._sink.beats else 0.0
        due = [] if self._sink.whole else [each for each in (beat, self._pulse.ping) if each > 0]
        return min(due, default=None)

    async def _sign_of_life(self) -> None:
        silent = asyncio.get_running_loop().time() - self._last
        if not self._open or self._busy:
            return  # not begun, or the client itself is slow
        beat = self._pulse.heartbeat if self._sink.beats else 0.0
        event = self._run.heartbeat() if 0 < beat <= silent + 0.05 else None
        if event is not None or 0 < self._pulse.ping <= silent + 0.05:
            self._signing = asyncio.Event()
            try:
                await self._sink.alive(event)
            finally:
                self._signing.set()
                self._signing = None
            self._last = asyncio.get_running_loop().time()
