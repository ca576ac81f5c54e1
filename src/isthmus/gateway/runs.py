"""Every run of this process, by owner and id; those in the background with a lease in the store.

A foreground run writes once, at its end. A background run is a row from its first moment: `queued` while it waits for
one of the places, `in_progress` when it has begun, then whatever it ended as. Its lease says that somebody is at it;
as long as it lives the run is ours alone, and when it is lost the run stops without a word, because another gateway
speaks for it now. Words from other processes (`cancel`, `delete`) come with the renewal of the leases.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.conduct.around import Stop
from isthmus.conduct.aside import Aside
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError
from isthmus.gateway.announce import Announcer
from isthmus.gateway.background import BackgroundRun
from isthmus.gateway.bell import Bell
from isthmus.log import tell
from isthmus.ports import UNFINISHED, EventBatch, Held, Store, StoredResponse, run_lease
from isthmus.protocol.events import Event
from isthmus.protocol.large import encode_sized
from isthmus.protocol.response import weigh_response

log = logging.getLogger("isthmus.gateway")

_PAUSE: Final = 0.5
_LAST_WORDS: Final = 2.0
"""Seconds that the reader of a run which was ended has to take the terminal event, before it is cut off."""
_SLOWEST_EAR: Final = 5.0
"""Seconds after which the leases are renewed and signals heard, although nothing seems to have changed."""
Key = tuple[str, str]
"""Owner and id."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    background: int = 64
    """Background runs at the same time."""
    queued: int = 1000
    """Background runs that may wait for a place."""
    lease: float = 30.0
    """Seconds after which a run whose process is silent may be taken over."""
    told: int = 16_000_000
    """Bytes of events of one background run that are kept in memory."""


DEFAULT_RUNS: Final = RunLimits()


def unexpected(error: Exception) -> Exception | None:
    """What the log should show whole: a bug of ours, not a store that is out of order."""
    return None if isinstance(error, IsthmusError) else error


class Guest(Protocol):
    def stop(self, reason: Stop) -> None: ...


class Runs:
    def __init__(
        self, store: Store, holder: str, limits: RunLimits, aside: Aside, announcer: Announcer | None = None
    ) -> None:
        self._store = store
        self.announcer = announcer or Announcer()
        self._aside = aside
        self.holder = holder
        self._limits = limits
        self._runs: dict[Key, Run] = {}
        self._background: dict[Key, BackgroundRun] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._places = limits.background
        self._queue: deque[BackgroundRun] = deque()
        self._renewing: asyncio.Task[None] | None = None
        self._owing = False
        """Whether a lease could not be given back."""
        self._changed = Bell()
        self._guests: set[Guest] = set()
        """What is done besides runs, and waited for like them."""
        self.draining = False
        """Whether nothing new is begun any more."""

    # ── all of them ────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self._runs) + len(self._guests)

    @contextmanager
    def guest(self, guest: Guest) -> Iterator[None]:
        """Something that is no run: a shutdown waits for it, too, and stops it in the end."""
        self._guests.add(guest)
        try:
            yield
        finally:
            self._guests.remove(guest)
            self._changed.ring()

    def get(self, owner: str, id: str) -> Run | None:
        entry = self._background.get((owner, id))
        return entry.run if entry is not None else self._runs.get((owner, id))

    def under_way(self, owner: str, id: str) -> bool:
        return self.get(owner, id) is not None

    def begun(self, run: Run) -> None:
        self._runs[run.owner, run.id] = run

    def over(self, run: Run) -> None:
        self._runs.pop((run.owner, run.id), None)
        self._changed.ring()

    def stop(self, run: Run, reason: Stop) -> None:
        run.stop(reason)
        entry = self._background.get((run.owner, run.id))
        if entry is not None and entry.place is not None and not entry.place.done():
            self._queue.remove(entry)
            entry.place.set_result(False)  # without a place: it only says that it is over

    def stop_all(self, reason: Stop) -> None:
        for run in [*self._runs.values(), *(entry.run for entry in self._background.values())]:
            self.stop(run, reason)
        for guest in list(self._guests):
            guest.stop(reason)

    def abandon(self) -> None:
        for run in list(self._runs.values()):
            run.abandon()

    async def end(self, run: Run) -> None:
        """Cancel it, and wait until it is over and what it said is kept."""
        self.stop(run, "cancelled")
        task = self._tasks.get((run.owner, run.id))
        if task is not None:
            await asyncio.wait([task])
            return
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._not_running(run)
        except TimeoutError:
            run.abandon()  # its client does not read: whoever ends it must not have to wait for that
            await self._not_running(run)

    async def _not_running(self, run: Run) -> None:
        while (run.owner, run.id) in self._runs:
            await self._changed.wait()

    async def none(self) -> None:
        """Wait until nothing runs."""
        while self._runs or self._background or self._guests:
            await self._changed.wait()

    # ── in the background ──────────────────────────────────────────────────────────────────────────

    @property
    def in_background(self) -> tuple[int, int]:
        """How many are made, and how many wait for a place."""
        waiting = len(self._queue)
        return len(self._background) - waiting, waiting

    async def start(self, run: Run, record: StoredResponse) -> bool:
        """Keep it as it is, then make it. False: somebody else makes it, or has ended it."""
        if len(self._background) >= self._limits.background + self._limits.queued:
            await run.let_go()
            raise IsthmusError(
                f"{self._limits.queued} background responses wait already; try again later, or raise "
                "`background.max_queued`",
                code="server_is_overloaded",
            )
        key, entry = (run.owner, run.id), BackgroundRun(run, self._limits.told)
        self._background[key] = entry
        run.tells_refusals = True
        try:
            kept = await self._claim(entry) and await self._store.save(record, holder=self.holder)
        except BaseException:
            await self._forget(key, entry)
            raise
        if not kept:
            await self._forget(key, entry)
            return False
        self._tasks[key] = asyncio.create_task(self._carry_out(key, entry), name=f"background {run.id}")
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(), name="renew leases")
        return True

    async def _forget(self, key: Key, entry: BackgroundRun) -> None:
        entry.over = True
        entry.wake()
        await self._release(entry.run)
        await entry.run.let_go()
        self._background.pop(key, None)
        self._tasks.pop(key, None)
        self._changed.ring()

    async def save(
        self, record: StoredResponse, last: list[Event], history: Callable[[], tuple[bytes, ...]] | None = None
    ) -> bool:
        """Write the end of a run; of one in the background with its last events, in one step.

        A follower at another gateway that sees the end has everything before it then. False: it was deleted, or
        somebody else has ended it.
        """
        entry = self._background.get((record.owner, record.id))
        if entry is None:  # nobody else has ever heard of it
            return await self._store.save(record, history=history)
        told = await self._encoded(last, len(record.response))
        batch = EventBatch(entry.kept, (*entry.unkept, *told))
        notices = self.announcer.notices(record.id, record.owner, record.status)
        saved = await self._store.save(record, events=batch, holder=self.holder, notices=notices)
        if saved:
            entry.kept += len(batch.events)
            self.announcer.queued()
        return saved

    def follow(self, owner: str, id: str, after: int) -> AsyncIterator[list[bytes]] | None:
        """Events above sequence number `after`, as they come; `None`: it is not made here.

        The run is looked up now, not at the first read: it may end in between.
        """
        entry = self._background.get((owner, id))
        return None if entry is None else entry.read(after + 1)

    async def aclose(self) -> None:
        self.stop_all("shutdown")
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=5)
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        if self._owing:
            await self._quietly(self._renew_once(), self.holder)

    async def _carry_out(self, key: Key, entry: BackgroundRun) -> None:
        run, placed = entry.run, False
        try:
            placed = await self._take_place(entry)
            # Now, not with its first event: a provider that answers whole says nothing before it is done.
            begun = placed and await self._begin(run)
            async with aclosing(run.events()) as batches:
                async for events in batches:
                    if run.lost:
                        break  # whoever follows it reads in the store how it ends
                    entry.add(await self._encoded(events, weigh_response(run.response) if run.response else 0))
                    if not run.finished:  # the last ones were kept with the end itself
                        begun = begun or await self._begin(run)
                        await self._keep(entry)
        except Exception as error:  # a bug of ours: its lease runs out, and recovery says so
            tell(log, "error", "background.broken", id=run.id, trace=error)
        finally:
            if placed:
                self._leave_place()
            await self._forget(key, entry)

    async def _encoded(self, events: list[Event], size: int) -> list[bytes]:
        """`size`: about that of the largest."""
        encode = partial(encode_sized, size=size)
        return await self._aside.do(lambda: [*map(encode, events)], heavy=size > HEAVY_TEXT)

    async def _take_place(self, entry: BackgroundRun) -> bool:
        """Wait for a place; without one only if it was stopped before its turn came."""
        if entry.run.stopping():
            return False
        if self._places > 0:
            self._places -= 1
            return True
        entry.place = asyncio.get_running_loop().create_future()
        self._queue.append(entry)
        return await entry.place

    def _leave_place(self) -> None:
        while self._queue:
            place = self._queue.popleft().place
            if place is not None and not place.done():  # who was cut off while waiting needs none
                place.set_result(True)
                return
        self._places += 1

    async def _begin(self, run: Run) -> bool:
        return await self._quietly(
            self._store.update_status(run.id, "in_progress", owner=run.owner, only_from=("queued",)), run.id
        )

    async def _keep(self, entry: BackgroundRun) -> None:
        """What the store does not take now it is offered again with the next ones: the run itself goes on."""
        run, batch = entry.run, EventBatch(entry.kept, tuple(entry.unkept))
        try:
            ours = await self._store.append_events(run.id, batch, owner=run.owner, holder=self.holder)
        except IsthmusError as error:
            tell(log, "error", "background.not_kept", id=run.id, reason=error)
            return
        if not ours:
            run.stop("lost")
            return
        entry.kept += len(batch.events)
        entry.wake()

    async def _release(self, run: Run) -> None:
        releasing = self._store.release(run_lease(run.id), owner=run.owner, holder=self.holder)
        self._owing = not await self._quietly(releasing, run.id) or self._owing

    @staticmethod
    async def _quietly(writing: Awaitable[object], id: str) -> bool:
        try:
            await writing
        except IsthmusError as error:
            tell(log, "error", "background.not_kept", id=id, reason=error)
            return False
        return True

    # ── leases ─────────────────────────────────────────────────────────────────────────────────────

    async def _renew(self) -> None:
        """Renew all leases of this process and hear what others have to say, as long as there is anything."""
        mark: int | None = None
        while self._background:
            try:
                if mark is None:
                    mark = await self._store.watch(0)  # before the first look, or what comes in the pause is missed
                await self._renew_once()
                # What this process writes is a change, too: without a pause its own renewals would wake it for ever.
                await asyncio.sleep(min(self._limits.lease / 3, _PAUSE))
                mark = await self._store.watch(min(self._limits.lease / 3, _SLOWEST_EAR), since=mark)
            except Exception as error:  # a bug of ours too: without renewals every run here would be lost
                tell(log, "error", "leases.not_renewed", reason=error, trace=unexpected(error))
                await asyncio.sleep(self._limits.lease / 10)

    async def _renew_once(self) -> None:
        held = await self._store.renew(self.holder, seconds=self._limits.lease)
        for signal in held.signals:
            entry = self._background.get((signal.owner, signal.name.removeprefix(run_lease(""))))
            if entry is not None:
                self.stop(entry.run, "cancelled")
        for (owner, id), entry in list(self._background.items()):
            if (owner, run_lease(id)) not in held.names and not await self._claim_again(entry):
                self.stop(entry.run, "lost")
        await self._give_back(held)

    async def _claim_again(self, entry: BackgroundRun) -> bool:
        """A lease that ran out while the process slept is ours again, unless somebody took it, or ended the run."""
        run = entry.run
        if entry.over or run.finished:
            return True
        if not await self._claim(entry):
            return False
        found = await self._store.load(run.id, owner=run.owner)
        return found is not None and (found.status in UNFINISHED or run.finished)

    async def _give_back(self, held: Held) -> None:
        """A lease whose release failed would be renewed for ever, and nobody could end what it is for."""
        for owner, name in sorted(held.names):
            if name.startswith(run_lease("")) and (owner, name.removeprefix(run_lease(""))) not in self._background:
                await self._store.release(name, owner=owner, holder=self.holder)

    async def _claim(self, entry: BackgroundRun) -> bool:
        name, owner = run_lease(entry.run.id), entry.run.owner
        return await self._store.claim(name, owner=owner, holder=self.holder, seconds=self._limits.lease)
