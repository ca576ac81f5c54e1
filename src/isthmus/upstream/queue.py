"""So many requests at a time, so many more that wait: the crowd before one address, in which everybody has their turn.

Whoever waits stands among their own (`Behalf.owner`: a key, or a team as one), and a place that is given back goes to
the next owner, not to the next request: somebody with 500 requests delays a neighbour by one of them. Nothing here is
looked for: however many owners there are, joining, leaving and being served cost the same. Waiting is our own affair:
it runs on a clock of its own, and says nothing about whoever is asked. A crowd is told to the log once, when it
begins, and once more when even its end is full.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any, Final, Literal

from isthmus.log import tell

log: Final = logging.getLogger("isthmus.upstream")

Why = Literal["full", "own", "displaced", "slow"]
"""Why somebody may not wait: too many do; too many of their own do; room was made for an owner of whom fewer wait; it
would take longer than they may wait."""

_SURE: Final = 3
"""Places that must have been given back while somebody waited before anything is said about the pace."""
_WEIGHT: Final = 0.2
"""Of the last of them in that pace."""

_Lane = OrderedDict["asyncio.Future[bool]", None]


class QueueFull(Exception):
    def __init__(self, why: Why = "full", wait: float | None = None) -> None:
        """`wait`: seconds that it would take as far as anybody knows."""
        super().__init__(why)
        self.why: Why = why
        self.wait = wait


class Places:
    """So many; who waits for one is served in turn, owner by owner. A semaphore of asyncio's asks five questions where
    nobody waits, for every request. (`dict` forgets at its front what it lost there: `OrderedDict` does not look.)"""

    __slots__ = ("_given", "_lanes", "_last", "_lengths", "_longest", "_pace", "free", "waiting")

    def __init__(self, count: int) -> None:
        self.free = count
        self.waiting = 0
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()
        """Owner → their requests, in the order in which the owners have their turns."""
        self._lengths: dict[int, OrderedDict[str, None]] = {}
        """How many wait → of whom so many do."""
        self._longest = 0
        self._given, self._pace, self._last = 0, 0.0, 0.0

    async def wait(self, owner: str = "") -> bool:
        """Whether a place was given; if not, somebody else is let wait in place of this one."""
        mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._join(owner, mine)
        try:
            return await mine
        except asyncio.CancelledError:
            lane = self._lanes.get(owner)
            if lane is not None and mine in lane:
                del lane[mine]
                self._shrink(owner, lane)
            elif not mine.cancelled() and mine.result():  # it was given one just now
                self.release()
            raise

    def release(self) -> None:
        while self._lanes:
            owner, lane = next(iter(self._lanes.items()))
            first, _ = lane.popitem(last=False)
            self._shrink(owner, lane)
            if first.done():  # who was called away in this very moment has not left yet, and wants none
                continue
            if lane:
                self._lanes.move_to_end(owner)
            first.set_result(True)
            self._keep_pace(first.get_loop().time())
            return
        self.free += 1

    def of(self, owner: str) -> int:
        """How many of theirs wait."""
        return len(self._lanes.get(owner, ()))

    def make_room(self, owner: str) -> bool:
        """Send the last one away of whoever has the most waiting, where that leaves them as many as `owner` has."""
        if self._longest < self.of(owner) + 2:
            return False
        longest = next(iter(self._lengths[self._longest]))
        lane = self._lanes[longest]
        last, _ = lane.popitem()
        self._shrink(longest, lane)
        if not last.done():
            last.set_result(False)
        return True

    def foresee(self, owner: str) -> float | None:
        """Seconds until one more of theirs would be served, at the pace of this crowd; `None`: nobody knows yet."""
        if self._given < _SURE:
            return None
        theirs = self.of(owner)
        rounds, lanes = theirs + 1, len(self._lanes) + (not theirs)
        return self._pace * min(self.waiting + 1, rounds * lanes)

    def _join(self, owner: str, mine: asyncio.Future[bool]) -> None:
        if not self.waiting:  # a new crowd has a pace of its own
            self._given, self._pace, self._last = 0, 0.0, mine.get_loop().time()
        lane = self._lanes.get(owner)
        if lane is None:
            lane = self._lanes[owner] = OrderedDict()
        lane[mine] = None
        self.waiting += 1
        self._note(owner, len(lane) - 1, len(lane))

    def _shrink(self, owner: str, lane: _Lane) -> None:
        self.waiting -= 1
        if not lane:
            del self._lanes[owner]
        self._note(owner, len(lane) + 1, len(lane))

    def _note(self, owner: str, before: int, after: int) -> None:
        if before:
            same = self._lengths[before]
            del same[owner]
            if not same:
                del self._lengths[before]
        if after:
            self._lengths.setdefault(after, OrderedDict())[owner] = None
        # A lane grows and shrinks by one: so does the longest.
        if after > self._longest or (before == self._longest and before not in self._lengths):
            self._longest = after

    def _keep_pace(self, now: float) -> None:
        took, self._last = now - self._last, now
        self._given += 1
        self._pace = took if self._given == 1 else self._pace + _WEIGHT * (took - self._pace)


class Queue:
    def __init__(
        self, provider: str, most: int, most_waiting: int | None, within: float, most_own: int | None = None
    ) -> None:
        """`most` requests at a time; `most_waiting` beside them, `most_own` of one owner's, each for `within` seconds.
        `None`: any number."""
        self._provider = provider
        self._most = most
        self._most_waiting = most_waiting
        self._most_own = most_own
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
        return self._places.waiting

    @property
    def length(self) -> int:
        """How far from the front one more would stand; 0: it would not have to wait."""
        return 0 if self._places.free else self._places.waiting + 1

    async def take(self, owner: str = "") -> Places:
        """A place, to be released. Raises `QueueFull`, and `TimeoutError` when it was waited for in vain."""
        places = self._places
        if places.free:
            places.free -= 1
            self._refused = False
            return places
        self._admit(places, owner)
        if not places.waiting:
            self._tell("upstream.full")
        async with asyncio.timeout(self._within):
            given = await places.wait(owner)
        if not given:
            raise self._refusal("displaced", owner)
        return places

    def _admit(self, places: Places, owner: str) -> None:
        """Whether it is worth to wait at all: whoever would be told so in minutes is told at once."""
        if self._most_own is not None and places.of(owner) >= self._most_own:
            raise self._refusal("own", owner)
        wait = places.foresee(owner)
        if places.waiting and wait is not None and wait > self._within:
            raise self._refusal("slow", owner)
        full = self._most_waiting is not None and places.waiting >= self._most_waiting
        if full and not places.make_room(owner):
            raise self._refusal("full", owner)

    def _refusal(self, why: Why, owner: str) -> QueueFull:
        if not self._refused:
            self._refused = True
            self._tell("upstream.queue.full", why=why)
        return QueueFull(why, self._places.foresee(owner))

    def _tell(self, event: str, **more: Any) -> None:
        tell(
            log,
            "warning",
            event,
            provider=self._provider,
            max_connections=self._most,
            max_queued=self._most_waiting,
            waiting=self._places.waiting,
            **more,
        )
