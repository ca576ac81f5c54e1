"""Whether there is memory for one more request: what those that are served take together, in a process of so many.

A request is counted from when its body is whole until it is answered, with what it takes on its way: as it came,
decoded, as it is sent, and as it is stored; never all of them at once (`_TIMES`). What it leads to (`gateway.led`)
takes as much, and is counted as soon as it is known, before anything is made of it. What is refused gets 503 and a time
to ask again; what goes on is never given up for it. Where nothing else is served, a request is always let in: nothing
but itself could make room for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from isthmus.config.schema import Limits
from isthmus.gateway.led import counted_by
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
        self._serving = 0
        self.held = 0
        """Bytes that all requests take which are served."""

    def adopt(self, limits: Limits, places: int) -> None:
        """Other limits; whoever is in stays."""
        self._limits, self._places = limits, places

    @property
    def worst_lag(self) -> float:
        """Seconds: the loop's longest delay within the last minute, where somebody measures it."""
        return 0.0 if self._vitals is None else self._vitals.worst_lag

    @contextmanager
    def take(self, size: int) -> Iterator[None]:
        cost = size * _TIMES
        if self._serving:
            self._check(cost)
        self._serving += 1
        self.held += cost
        try:
            yield
        finally:
            self._serving -= 1
            self.held -= cost

    @contextmanager
    def led(self) -> Iterator[None]:
        """Around the serving of a request that was taken: whatever it turns out to lead to."""
        taken = 0

        def count(size: int) -> None:
            nonlocal taken
            cost = size * _TIMES
            if self._serving > 1:
                self._check(cost)
            taken += cost
            self.held += cost

        try:
            with counted_by(count):
                yield
        finally:
            self.held -= taken

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of `server.max_concurrent`, whatever is asked for."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    def check_places(self) -> None:
        """Refused where all are taken: of those who ask for work, not of those who only look."""
        if self.active >= self._places:
            raise overloaded("the gateway is serving as many requests as it may (`server.max_concurrent`)")

    def _check(self, cost: int) -> None:
        if self.held + cost > self._limits.max_serving:
            raise overloaded(f"all requests together take {self.held:,} bytes already (`limits.max_serving`)")
        memory = self._vitals.memory if self._vitals is not None else 0
        if self._limits.max_memory and memory > self._limits.max_memory:
            raise overloaded(f"the gateway takes {memory:,} bytes of memory (`limits.max_memory`)")
