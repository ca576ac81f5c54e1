"""Where limits are counted: in this process (here), or in Redis for all of them (`access.redis`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from isthmus.access.places import Places, PlacesHere
from isthmus.access.windows import Windows, count_here


@dataclass(frozen=True, slots=True)
class Pair:
    windows: Windows
    places: Places


class Counters(Protocol):
    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What rises where it cannot be counted."""

    def now(self) -> Pair:
        """To count with. Raises `ConfigError` where nobody can count, and nobody is to be let through then."""

    def failed(self, error: Exception) -> None:
        """Counting rose one of `errors`: `now` answers differently for a while."""

    async def aclose(self) -> None: ...


class CountersHere:
    """In this process alone."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self._pair = Pair(count_here(), PlacesHere())

    def now(self) -> Pair:
        return self._pair

    def failed(self, error: Exception) -> None:
        """It never does."""

    async def aclose(self) -> None:
        """Nothing is open."""
