"""What all workers have counted, those that are gone included: so that no counter ever goes down.

Kept by the supervisor. Whoever looks has the living asked first, for a moment; of one that does not answer counts what
it said last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, TypeVar

from isthmus.observe.metrics.catalog import CATALOG
from isthmus.observe.metrics.meters import Reading, merge
from isthmus.server.line import Sum

PATIENCE: Final = 1.0
"""Seconds that the others have to answer."""


_Worker = TypeVar("_Worker")


class Census(Generic[_Worker]):
    def __init__(self) -> None:
        self._last: dict[_Worker, Sequence[Reading]] = {}
        self._gone: list[Reading] = []
        self._number = 0
        self._missing: set[_Worker] = set()
        self._all_here = asyncio.Event()
        self._counting: asyncio.Task[Sum] | None = None

    def note(self, worker: _Worker, readings: Sequence[Reading], number: int = 0) -> None:
        self._last[worker] = readings
        if number and number == self._number:
            self._missing.discard(worker)
            if not self._missing:
                self._all_here.set()

    def bury(self, worker: _Worker) -> None:
        """It ended: what it counted stays counted, what it held is gone."""
        last = self._last.pop(worker, ())
        counted = [each for each in last if each.name in CATALOG and CATALOG[each.name].kind != "gauge"]
        self._gone = merge([self._gone, counted])
        self._missing.discard(worker)
        if not self._missing:
            self._all_here.set()

    async def count(self, workers: Collection[_Worker], ask: Callable[[_Worker, int], object]) -> Sum:
        """All of them together, as they are now. Who asks while others are asked gets the same answer."""
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count(workers, ask), name="count what all workers counted")
        return await asyncio.shield(self._counting)

    async def _count(self, workers: Collection[_Worker], ask: Callable[[_Worker, int], object]) -> Sum:
        self._number += 1
        self._missing = set(workers)
        self._all_here.clear()
        for worker in workers:
            ask(worker, self._number)
        if self._missing:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._all_here.wait()
            except TimeoutError:
                pass
        silent = len(self._missing)
        total = merge([self._gone, *self._last.values()])
        return Sum(self._number, total, answering=len(self._last) - silent, silent=silent)
