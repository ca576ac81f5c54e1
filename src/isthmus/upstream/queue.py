"""So many requests at a time, so many more that wait: the crowd before one address.

Waiting here is our own affair: it runs on a clock of its own, and says nothing about whoever is asked. A crowd is
told to the log once, when it begins, and once more when even its end is full.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from isthmus.log import tell

log: Final = logging.getLogger("isthmus.upstream")


class QueueFull(Exception):
    """As many wait already as may."""


class Places:
    """So many, handed on in the order in which they were asked for. A semaphore of asyncio's asks five questions where
    nobody waits, for every request."""

    __slots__ = ("free", "waiting")

    def __init__(self, count: int) -> None:
        self.free = count
        self.waiting: dict[asyncio.Future[None], None] = {}

    async def wait(self) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[mine] = None
        try:
            await mine
        except asyncio.CancelledError:
            if self.waiting.pop(mine, True) is True and not mine.cancelled():  # it was given one just now
                self.release()
            raise

    def release(self) -> None:
        while self.waiting:
            first = next(iter(self.waiting))
            del self.waiting[first]
            if not first.done():  # who was called away in this very moment has not left yet, and wants none
                first.set_result(None)
                return
        self.free += 1


class Queue:
    def __init__(self, provider: str, most: int, most_waiting: int | None, within: float) -> None:
        """`most` requests at a time; `most_waiting` beside them, each for `within` seconds. `None`: any number."""
        self._provider = provider
        self._most = most
        self._most_waiting = most_waiting
        self._within = within
        self.reset()

    def reset(self) -> None:
        """Begin anew: waiting belongs to a loop, and that may have ended."""
        self._places = Places(self._most)
        self._refused = False

    @property
    def taken(self) -> int:
        """Places that are taken."""
        return self._most - self._places.free

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._places.waiting)

    @property
    def length(self) -> int:
        """How far from the front one more would stand; 0: it would not have to wait."""
        return 0 if self._places.free else len(self._places.waiting) + 1

    async def take(self) -> Places:
        """A place, to be released. Raises `QueueFull`, and `TimeoutError` when it was waited for in vain."""
        places = self._places
        if places.free:
            places.free -= 1
            self._refused = False
            return places
        if self._most_waiting is not None and len(places.waiting) >= self._most_waiting:
            if not self._refused:
                self._refused = True
                self._tell("upstream.queue.full")
            raise QueueFull
        if not places.waiting:
            self._tell("upstream.full")
        async with asyncio.timeout(self._within):
            await places.wait()
        return places

    def _tell(self, event: str) -> None:
        tell(
            log,
            "warning",
            event,
            provider=self._provider,
            max_connections=self._most,
            max_queued=self._most_waiting,
            waiting=len(self._places.waiting),
        )
