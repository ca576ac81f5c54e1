"""What can be told to end while a task reads it: the part of a run that knows who reads, who waits, and for how long.

Worth knowing: a reader is interrupted only where it waits on the upstream. What it does besides, it does to its end;
whoever does not even take the last words is cut off.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Final, TypeVar

from isthmus.bridge.turn import Turn
from isthmus.conduct.around import Stop, Stopped

_LAST_WORDS: Final = 30.0
"""Seconds that a reader has to take the terminal event of a response that took too long."""

_T = TypeVar("_T")


class Stoppable(ABC):
    __slots__ = ("_reader", "_stop", "_timer", "_total", "_waits", "abandoned")

    def __init__(self, total: float | None) -> None:
        """`total`: seconds that all of it may take."""
        self._total = total
        self._reader: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waits = False
        self._stop: Stop | None = None
        self.abandoned = False
        """Whether its reader was cut off."""

    @property
    @abstractmethod
    def _turn(self) -> Turn: ...

    @property
    @abstractmethod
    def finished(self) -> bool: ...

    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop is not None

    def stop(self, reason: Stop) -> None:
        """End it now. Whoever iterates gets the terminal event next."""
        if self._stop is None and not self._turn.ended:
            self._stop = reason
            if self._reader is not None and self._waits:
                self._reader.cancel()

    def abandon(self) -> None:
        """It was stopped, and its reader does not even take that: cut the reader off. What there was is saved."""
        saving = self._turn.ended and not self.finished
        if self._reader is not None and not self._waits and not saving:
            self.abandoned = True
            self._reader.cancel()

    def _begin_reading(self) -> None:
        self._reader = asyncio.current_task()
        if self._total is not None:
            self._timer = asyncio.get_running_loop().call_later(self._total, self._expire)

    def _end_reading(self) -> None:
        self._reader = None
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.stop("timeout")
        self._timer = asyncio.get_running_loop().call_later(_LAST_WORDS, self.abandon)

    async def _wait(self, awaitable: Awaitable[_T]) -> _T:
        """Wait on the upstream: the only place where `stop` cancels the reader's task."""
        if self._stop is not None:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise Stopped
        self._waits = True
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self.stopping() and self._reader is not None:
                self._reader.uncancel()
            raise
        finally:
            self._waits = False
