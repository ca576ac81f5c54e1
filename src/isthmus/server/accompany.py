"""A run and whoever reads it: watched, so that a client that leaves stops the upstream.

In: a run and a `Sink`. The connection tells when the client goes; where it does not, one task waits for that. While the
upstream is silent, the sink is asked for signs of life. Nothing here knows how a sink speaks.
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

    def write(self, run: Run, events: list[Event]) -> Awaitable[None] | None:
        """Hand a batch over; to be waited for while the client is slow. Nothing was told before the first one."""

    async def alive(self, event: Event | None) -> None:
        """A sign of life: the event if there is one, else a comment."""

    async def end(self, run: Run) -> None:
        """The run is over, and all of it was written."""

    def left(self) -> Awaitable[None]:
        """Done when the client is gone."""


async def accompany(run: Run, sink: Sink, pulse: Server) -> None:
    """Read the run to its end into the sink. Raises what fails before anything was told, and `ClientLeft`."""
    company = _Company(run, sink, pulse)
    company.begin()
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
        company.end()
    if company.left:
        raise company.farewell
    await sink.end(run)


class _Company:
    __slots__ = (
        *("_busy", "_companion", "_interval", "_last", "_loop", "_pulse", "_run", "_sign", "_signing"),
        *("_sink", "_timer", "_why", "left"),
    )

    def __init__(self, run: Run, sink: Sink, pulse: Server) -> None:
        self._run = run
        self._sink = sink
        self._pulse = pulse
        self._loop = asyncio.get_running_loop()
        self._busy = False
        self._last = 0.0
        """When something was told; 0: nothing was yet."""
        self._interval = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._companion: asyncio.Task[None] | None = None
        """Waits for the client's leaving, where nobody tells of it."""
        self._sign: asyncio.Task[None] | None = None
        self._signing: asyncio.Event | None = None
        """Set when the sign of life that is under way was given."""
        self.left = False
        self._why: Exception | None = None

    @property
    def farewell(self) -> Exception:
        """Why nothing more is told to a client that is gone."""
        return self._why or ClientLeft()

    def begin(self) -> None:
        sink = self._sink
        if sink.leaving is not None:
            sink.leaving.then(self.go)
        else:
            self._companion = self._loop.create_task(self._watch())
        if not sink.whole:
            self._interval = min((each for each in (self._beat, self._pulse.ping) if each > 0), default=0.0)
            self._await_silence()

    def end(self) -> None:
        if self._sink.leaving is not None:
            self._sink.leaving.then(None)
        for each in (self._timer, self._companion, self._sign):
            if each is not None:
                each.cancel()

    async def write_all(self) -> None:
        run, write, now = self._run, self._sink.write, self._loop.time
        async with aclosing(run.events()) as batches:
            async for batch in batches:
                if self.left:
                    raise self.farewell
                if self._signing is not None:
                    await self._signing.wait()
                slow = write(run, batch)
                if slow is not None:
                    self._busy = True
                    await slow
                    self._busy = False
                self._last = now()

    def go(self) -> None:
        """The client is gone, or as good as."""
        self.left = True
        self._run.stop("left")

    async def _watch(self) -> None:
        try:
            await self._sink.left()
        except Exception as error:  # as if it had risen while something was written
            self._why = error
        self.go()

    # ── signs of life ──────────────────────────────────────────────────────────────────────────────

    @property
    def _beat(self) -> float:
        return self._pulse.heartbeat if self._sink.beats else 0.0

    def _await_silence(self) -> None:
        """One may be due after so many seconds."""
        if self._interval > 0:
            self._timer = self._loop.call_later(self._interval, self._look)

    def _look(self) -> None:
        silent = self._loop.time() - self._last + 0.05
        if self._last and not self._busy and not self.left:  # begun, and the client itself is not slow
            event = self._run.heartbeat() if 0 < self._beat <= silent else None
            if event is not None or 0 < self._pulse.ping <= silent:
                self._signing = asyncio.Event()
                self._sign = self._loop.create_task(self._give_sign(event, self._signing))
                return
        self._await_silence()

    async def _give_sign(self, event: Event | None, given: asyncio.Event) -> None:
        try:
            await self._sink.alive(event)
        except Exception as error:  # likewise
            self._why = error
            self.go()
        finally:
            given.set()
            self._signing = None
        self._last = self._loop.time()
        self._await_silence()
