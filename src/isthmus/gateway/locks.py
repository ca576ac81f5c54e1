"""One at a time: a lease from the moment that a request is taken until its end is told, for its conversation or for the
name that its client gave it.

Each request holds its own, so that two of one gateway exclude each other as those of two gateways do. It is extended
for as long as its run is under way, and given back before anybody is told that it has ended: whoever asks next finds it
free. A gateway that dies gives nothing back, and its leases run out; so does one that was never made use of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports import Store

log = logging.getLogger("isthmus.gateway")


@dataclass(eq=False, slots=True)
class Lock:
    owner: str
    name: str
    """Of the lease."""
    run: str
    """The id of the response that is made; empty: it lasts until it is given back."""
    holder: str
    taken: float
    locks: Locks

    async def release(self) -> None:
        """As often as one likes."""
        await self.locks.release(self)


class Locks:
    def __init__(self, store: Store, holder: str, *, lease: float, under_way: Callable[[str, str], bool]) -> None:
        """`under_way` says of an owner and the id of a run whether that is being made here."""
        self._store = store
        self._holder = holder
        self._lease = lease
        self._under_way = under_way
        self._taken = 0
        self._held: dict[Lock, None] = {}
        self._extending: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Future[None]] = set()

    async def take(self, owner: str, name: str, run: str = "") -> Lock | None:
        """`None`: somebody else has it."""
        self._taken += 1
        now = asyncio.get_running_loop().time()
        lock = Lock(owner, name, run, f"{self._holder}/{self._taken}", now, self)
        self._held[lock] = None
        try:
            taken = await self._claim(lock)
        except BaseException:
            await self.release(lock)  # who is cancelled may have got it all the same
            raise
        if not taken:
            del self._held[lock]
            return None
        if self._extending is None or self._extending.done():
            self._extending = asyncio.create_task(self._extend(), name="extend locks")
        return lock

    async def release(self, lock: Lock) -> None:
        if self._held.pop(lock, lock) is lock:
            return
        # On its own: whoever waits for it may be cancelled, and others must not wait for that lease to run out.
        releasing = asyncio.ensure_future(self._give_back(lock))
        self._releasing.add(releasing)
        releasing.add_done_callback(self._releasing.discard)
        await asyncio.shield(releasing)

    async def aclose(self) -> None:
        if self._extending is not None:
            self._extending.cancel()
            await asyncio.wait([self._extending])
        for lock in list(self._held):
            await self.release(lock)
        if self._releasing:
            await asyncio.wait(list(self._releasing))

    async def _extend(self) -> None:
        while self._held:
            await asyncio.sleep(self._lease / 3)
            for lock in list(self._held):
                if lock not in self._held:
                    continue  # given back meanwhile
                if not self._needed(lock):
                    del self._held[lock]
                    continue
                try:
                    if not await self._claim(lock):
                        # This process slept. Whoever took it may have changed the conversation: then the save says so.
                        tell(log, "warning", "lock.lost", id=lock.run or None, name=lock.name)
                        self._held.pop(lock, None)
                except IsthmusError as error:
                    tell(log, "error", "lock.not_extended", id=lock.run or None, name=lock.name, reason=error)

    def _needed(self, lock: Lock) -> bool:
        age = asyncio.get_running_loop().time() - lock.taken
        return not lock.run or age < self._lease / 2 or self._under_way(lock.owner, lock.run)

    async def _claim(self, lock: Lock) -> bool:
        return await self._store.claim(lock.name, owner=lock.owner, holder=lock.holder, seconds=self._lease)

    async def _give_back(self, lock: Lock) -> None:
        try:
            await self._store.release(lock.name, owner=lock.owner, holder=lock.holder)
        except IsthmusError as error:
            tell(log, "error", "lock.not_released", id=lock.run or None, name=lock.name, reason=error)
