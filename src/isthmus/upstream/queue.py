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
        self._places = asyncio.Semaphore(self._most)
        self._waiting = 0
        self._refused = False

    @property
    def length(self) -> int:
        """How far from the front one more would stand; 0: it would not have to wait."""
        return self._waiting + 1 if self._places.locked() else 0

    async def take(self) -> asyncio.Semaphore:
        """A place, to be released. Raises `QueueFull`, and `TimeoutError` when it was waited for in vain."""
        places = self._places
        if not places.locked():
            await places.acquire()  # does not wait
            self._refused = False
            return places
        if self._most_waiting is not None and self._waiting >= self._most_waiting:
            if not self._refused:
                self._refused = True
                self._tell("upstream.queue.full")
            raise QueueFull
        if not self._waiting:
            self._tell("upstream.full")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._within):
                await places.acquire()
        finally:
            if places is self._places:
                self._waiting -= 1
        return places

    def _tell(self, event: str) -> None:
        tell(
            log,
            "warning",
            event,
            provider=self._provider,
            max_connections=self._most,
            max_queued=self._most_waiting,
            waiting=self._waiting,
        )
