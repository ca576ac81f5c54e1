"""Whether there is memory for one more request: what those that are served take together, in a process of so many.

A request is counted from when its body is whole until it is answered, with what it takes on its way: as it came,
decoded, as it is sent, and as it is stored; never all of them at once (`_TIMES`). What it leads to (`gateway.led`)
takes as much, and is counted as soon as it is known, before anything is made of it. What is refused gets 503 and a time
to ask again; what goes on is never given up for it. Where nothing else is served, a request is always let in: nothing
but itself could make room for it.
"""

from __future__ import annotations

from typing import Final

from isthmus.config.schema import Limits
from isthmus.gateway.led import Before, count_as_before, count_by
from isthmus.observe.memory import Litter
from isthmus.observe.vitals import Vitals
from isthmus.server.errors import overloaded

_TIMES: Final = 4
"""Bytes that a request takes for each byte of its body, at its worst moment."""


class Room:
    def __init__(self, limits: Limits, vitals: Vitals | None, places: int) -> None:
        self._limits = limits
        self._vitals = vitals
        self._places = places
        self.active = 0
        """Requests that are served."""
        self.serving = 0
        """Of these, those that brought a body."""
        self.held = 0
        """Bytes that all requests take which are served."""
        self.litter = Litter()

    def adopt(self, limits: Limits, places: int) -> None:
        """Other limits; whoever is in stays."""
        self._limits, self._places = limits, places

    @property
    def worst_lag(self) -> float:
        """Seconds: the loop's longest delay within the last minute, where somebody measures it."""
        return 0.0 if self._vitals is None else self._vitals.worst_lag

    def serve(self, size: int | None) -> _Served:
        """A place, and the room for a body of so many bytes and for what it leads to; `None`: it brought none."""
        return _Served(self, size)

    def take(self, size: int) -> _Taken:
        return _Taken(self, size * _TIMES)

    def led(self) -> _Led:
        """Around the serving of a request that was taken: whatever it turns out to lead to."""
        return _Led(self)

    def place(self) -> _Place:
        """One of `server.max_concurrent`, whatever is asked for."""
        return _Place(self)

    def check_places(self) -> None:
        """Refused where all are taken: of those who ask for work, not of those who only look."""
        if self.active >= self._places:
            raise overloaded("the gateway is serving as many requests as it may (`server.max_concurrent`)")

    def count(self, size: int) -> int:
        """Bytes that one of those that are served leads to. Out: what they take, to be given back."""
        cost = size * _TIMES
        if self.serving > 1:
            self.check(cost)
        self.held += cost
        return cost

    def check(self, cost: int) -> None:
        if self.held + cost > self._limits.max_serving:
            raise overloaded(f"all requests together take {self.held:,} bytes already (`limits.max_serving`)")
        memory = self._vitals.memory if self._vitals is not None else 0
        if self._limits.max_memory and memory > self._limits.max_memory:
            raise overloaded(f"the gateway takes {memory:,} bytes of memory (`limits.max_memory`)")


# Written out, like others on the way of every request: a generator costs more than what it does here.


class _Served:
    """`_Taken`, `_Led` and `_Place` in one: every request comes by here."""

    __slots__ = ("_before", "_cost", "_room", "_size")
    _before: Before

    def __init__(self, room: Room, size: int | None) -> None:
        self._room = room
        self._size = size
        self._cost = 0 if size is None else size * _TIMES

    def __enter__(self) -> None:
        room = self._room
        if self._size is not None:
            if room.serving:
                room.check(self._cost)
            room.serving += 1
            room.held += self._cost
        room.active += 1
        self._before = count_by(self._count)

    def __exit__(self, *_: object) -> None:
        count_as_before(self._before)
        room = self._room
        room.active -= 1
        room.serving -= self._size is not None
        room.held -= self._cost
        room.litter.dropped(self._cost)

    def _count(self, size: int) -> None:
        self._cost += self._room.count(size)


class _Taken:
    __slots__ = ("_cost", "_room")

    def __init__(self, room: Room, cost: int) -> None:
        self._room = room
        self._cost = cost

    def __enter__(self) -> None:
        room, cost = self._room, self._cost
        if room.serving:
            room.check(cost)
        room.serving += 1
        room.held += cost

    def __exit__(self, *_: object) -> None:
        room, cost = self._room, self._cost
        room.serving -= 1
        room.held -= cost
        room.litter.dropped(cost)


class _Led:
    __slots__ = ("_before", "_room", "_taken")
    _before: Before

    def __init__(self, room: Room) -> None:
        self._room = room
        self._taken = 0

    def __enter__(self) -> None:
        self._before = count_by(self._count)

    def __exit__(self, *_: object) -> None:
        count_as_before(self._before)
        self._room.held -= self._taken
        self._room.litter.dropped(self._taken)

    def _count(self, size: int) -> None:
        self._taken += self._room.count(size)


class _Place:
    __slots__ = ("_room",)

    def __init__(self, room: Room) -> None:
        self._room = room

    def __enter__(self) -> None:
        self._room.active += 1

    def __exit__(self, *_: object) -> None:
        self._room.active -= 1
