"""What was used, on its way to the store: summed up here, and written once a second, or at once where a budget waits
for it. Nobody who is served waits for any of this.

Money that is set aside is held for as long as its run goes on: it is held anew before the time is over. What the store
does not take is offered again; beyond a bound the rest is lost, and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from isthmus.access.budgets import FAR_MORE
from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports.spending import Hold, Refusal, Row, Spending, Use, sum_up

log = logging.getLogger("isthmus.usage")

EVERY: Final = 1.0
"""Seconds between two writes."""
_AT_ONCE: Final = 64


class Ledger:
    def __init__(self, store: Spending, *, most: int = 10_000, hold: float = 60.0, every: float = EVERY) -> None:
        """`most`: sums, and runs that ended, which may wait for the store. `hold`: seconds after which the money that a
        process has set aside is free, if that dies."""
        self._store = store
        self._most, self._hold_for, self._every = most, hold, every
        self._uses: dict[Row, Use] = {}
        self._ended: list[tuple[str, Sequence[Use]]] = []
        self._holds: dict[str, tuple[list[Hold], float]] = {}
        """By id: what is held, and since when by the loop's clock."""
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.lost = 0
        """Runs of which nothing was noted."""

    async def hold(self, id: str, holds: list[Hold]) -> Refusal | None:
        # What has just ended may be all that is missing, or more than was set aside for it: also while it is written.
        if self._ended or self._writing.locked():
            await asyncio.shield(self.flush())
        try:
            refusal = await self._store.hold(id, holds, seconds=self._hold_for)
        except BaseException:  # perhaps it is held, and whoever wanted it is gone
            self.settle(id, ())
            raise
        if refusal is None:
            # Whatever happens meanwhile, what runs keeps what it has.
            kept = [replace(hold, most=FAR_MORE) for hold in holds]
            self._holds[id] = kept, asyncio.get_running_loop().time()
            self._start()
        return refusal

    def settle(self, id: str, uses: Sequence[Use]) -> None:
        """A run that had set money aside is over."""
        self._holds.pop(id, None)
        if len(self._ended) >= self._most:
            self._lose(uses)
            return
        self._ended.append((id, uses))
        self._start()
        self._wake.set()

    def note(self, uses: Sequence[Use]) -> None:
        if len(self._uses) >= self._most and any(use.row not in self._uses for use in uses):
            self._lose(uses)
            return
        sum_up(self._uses, uses)
        self._start()

    async def flush(self) -> bool:
        """Write what waits. False: the store did not take all of it."""
        async with self._writing:
            ended, self._ended = self._ended, []
            uses, self._uses = self._uses, {}
            try:
                while ended:
                    await asyncio.gather(*(self._store.settle(id, used) for id, used in ended[:_AT_ONCE]))
                    del ended[:_AT_ONCE]
                if uses:
                    await self._store.note_uses(list(uses.values()))
                    uses = {}
                await self._hold_on()
            except IsthmusError as error:
                tell(log, "error", "usage.not_written", reason=error, waiting=len(ended) + len(uses))
                return False
            finally:  # to settle twice changes nothing
                self._ended[:0] = ended
                if uses:
                    sum_up(uses, self._uses.values())
                    self._uses = uses
        return True

    async def aclose(self) -> None:
        if self._task is not None:
            async with self._writing:  # a write that is under way would be told twice
                self._task.cancel()
            await asyncio.wait([self._task])
        await self.flush()

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write(), name="write what was used")

    async def _write(self) -> None:
        while self._uses or self._ended or self._holds:
            try:
                async with asyncio.timeout(self._every):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                if not await self.flush():
                    await asyncio.sleep(self._every)
            except Exception as error:  # a bug of ours: what comes later is written all the same
                tell(log, "error", "usage.not_written", trace=error)
                await asyncio.sleep(self._every)

    async def _hold_on(self) -> None:
        now = asyncio.get_running_loop().time()
        for id, (holds, since) in list(self._holds.items()):
            if now - since >= self._hold_for / 3:
                await self._store.hold(id, holds, seconds=self._hold_for)
                if id in self._holds:
                    self._holds[id] = holds, now

    def _lose(self, uses: Sequence[Use]) -> None:
        self.lost += 1
        if self.lost.bit_count() == 1:  # the first, the second, the fourth …: a log is no place for all of them
            tell(log, "error", "usage.lost", runs=self.lost, bound=self._most, models=[use.model for use in uses])
