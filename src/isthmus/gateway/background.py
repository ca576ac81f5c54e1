"""A background run and what it has told lately, for whoever follows it in this process.

In: events as they are told, and how many of them the store has. Out: the events from a number on, as they come. Never
more than `most` bytes of what the store can tell as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from isthmus.conduct.run import Run
from isthmus.gateway.bell import Bell


class BackgroundRun:
    """One background run, and the last events that it has told; those before them are in the store."""

    def __init__(self, run: Run, most: int) -> None:
        self.run = run
        self.kept = 0
        """How many of its events the store has."""
        self._most = most
        self._events: list[bytes] = []
        self._first = self._size = 0
        """The number of the first of these, and their bytes."""
        self.over = False
        self.place: asyncio.Future[bool] | None = None
        """What it waits for while it is queued."""
        self._changed = Bell()

    def add(self, told: list[bytes]) -> None:
        self._events += told
        self._size += sum(map(len, told))
        if self._size > self._most:
            self._let_go()
        self.wake()

    @property
    def unkept(self) -> list[bytes]:
        return self._events[self.kept - self._first :]

    def _let_go(self) -> None:
        """Down to half of what is allowed, so that not every event pays for it; never what the store has not got."""
        count = 0
        while self._size > self._most // 2 and self._first + count < self.kept and count < len(self._events):
            self._size -= len(self._events[count])
            count += 1
        del self._events[:count]
        self._first += count

    def wake(self) -> None:
        self._changed.ring()

    async def read(self, position: int) -> AsyncIterator[list[bytes]]:
        """Events from this number on; ends early where they are here no more: then the store goes on."""
        while position >= self._first:
            # Nothing is told before the store knows of it: what it knows nothing of may be made again elsewhere.
            if self.kept and (ready := self._events[position - self._first :]):
                position += len(ready)
                yield ready
            elif self.over:
                return
            else:
                await self._changed.wait()
