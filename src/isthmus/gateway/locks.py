"""One turn at a time in each conversation: a lease from the moment that a request is taken until its end is told.

Each turn holds its own, so that two of one gateway exclude each other as those of two gateways do. It is extended for
as long as its run is under way, and given back before anybody is told that the turn has ended: whoever asks next finds
it free. A gateway that dies gives nothing back, and its leases run out; so does one that was never made use of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.ports import Store, conversation_lease, conversation_locked

log = logging.getLogger("isthmus.gateway")


@dataclass(eq=False, slots=True)
class Lock:
    owner: str
    conversation: str
    run: str
    """The id of the response that is made."""
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
        self._held: dict[Lock, None] = {}
        self._extending: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Future[None]] = set()

    async def take(self, owner: str, conversation: str, run: str) -> Lock:
        """Refused while another turn is under way."""
        now = asyncio.get_running_loop().time()
        lock = Lock(owner, conversation, run, f"{self._holder}/{run}", now, self)
        self._held[lock] = None
        try:
            taken = await self._claim(lock)
        except BaseException:
            await self.release(lock)  # who is cancelled may have got it all the same
            raise
        if not taken:
            del self._held[lock]
            raise conversation_locked(conversation)
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
                        tell(log, "warning", "conversation.lock_lost", id=lock.run, conversation=lock.conversation)
                        self._held.pop(lock, None)
                except IsthmusError as error:
                    tell(log, "error", "conversation.not_extended", id=lock.run, reason=error)

    def _needed(self, lock: Lock) -> bool:
        age = asyncio.get_running_loop().time() - lock.taken
        return age < self._lease / 2 or self._under_way(lock.owner, lock.run)

    async def _claim(self, lock: Lock) -> bool:
        name = conversation_lease(lock.conversation)
        return await self._store.claim(name, owner=lock.owner, holder=lock.holder, seconds=self._lease)

    async def _give_back(self, lock: Lock) -> None:
        name = conversation_lease(lock.conversation)
        try:
            await self._store.release(name, owner=lock.owner, holder=lock.holder)
        except IsthmusError as error:
            tell(log, "error", "conversation.not_released", id=lock.run, reason=error)
