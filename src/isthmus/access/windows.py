"""What was counted within the last minute, by a sliding window: this minute, and of the minute before so much as is
still within sixty seconds.

The counting is that of the `limits` library, in this process or in Redis. What was estimated too high is taken back, by
a negative amount: the window then says what was really used. Worth knowing: the library is loaded with the first limit.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from limits.aio.storage import MemoryStorage, RedisStorage

MINUTE: Final = 60
_ANY: Final = 2**53
"""More than any limit: what must be counted in any case."""
_SURELY: Final = 0.01
"""Seconds more: clocks are not that exact."""


class Window(NamedTuple):
    """As the library tells it: counts of the minute before and of this one, and for how long each still counts."""

    before: int
    before_left: float
    now: int
    now_left: float
    """A minute more than is left of this minute: then it is the minute before."""

    @property
    def used(self) -> int:
        return max(0, floor(self.before * self.before_left / MINUTE + self.now))

    def wait(self, amount: int, most: int) -> float:
        """Seconds until so much has room, if nothing else comes; 0: now."""
        if self.used + amount <= most:
            return 0.0
        room = most - amount + 1  # not all of it: a part of a token or a request is none
        if self.now < room and self.before > 0:
            return max(0.0, self.before_left - (room - self.now) * MINUTE / self.before) + _SURELY
        left = max(0.0, self.now_left - MINUTE)
        return left + (MINUTE * (1 - room / self.now) if self.now > room else 0.0) + _SURELY

    def reset(self) -> float:
        """Seconds until all of it is forgotten, if nothing else comes."""
        return self.now_left if self.now > 0 else self.before_left if self.before > 0 else 0.0


class Windows(Protocol):
    async def take(self, name: str, amount: int, most: int) -> bool:
        """Count so much, if there is room."""

    async def add(self, name: str, amount: int) -> None:
        """Count so much in any case; below zero: take it back."""

    async def look(self, name: str) -> Window: ...


class Counted:
    """`Windows` over a storage of the library."""

    def __init__(self, storage: MemoryStorage | RedisStorage) -> None:
        self._storage = storage

    async def take(self, name: str, amount: int, most: int) -> bool:
        return await self._storage.acquire_sliding_window_entry(name, most, MINUTE, amount)

    async def add(self, name: str, amount: int) -> None:
        if amount:
            await self._storage.acquire_sliding_window_entry(name, _ANY, MINUTE, amount)

    async def look(self, name: str) -> Window:
        return Window(*await self._storage.get_sliding_window(name, MINUTE))


def count_here() -> Counted:
    """In this process."""
    from limits.aio.storage import MemoryStorage

    return Counted(MemoryStorage())
