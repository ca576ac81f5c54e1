"""The tables that traces are kept in, wherever these are: what reads and writes of them need of a connection.

Statements are written once, for all of them: with `?` for values, and with nothing that only one of them knows. What
they do each in their own way has a name here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Answer(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Tables(Protocol):
    @property
    def most_values(self) -> int:
        """That one statement takes."""

    @property
    def pads(self) -> bool:
        """Whether one statement may name a row twice, and a longer one costs less than another one."""

    @property
    def flags(self) -> tuple[int, int]:
        """What stands for false and for true in its rows."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Answer: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object: ...

    def writing(self) -> AbstractContextManager[None]:
        """One step, done whole or not at all, while nobody else writes."""

    def last(self) -> tuple[int, float]:
        """The highest `seq` so far, also of traces that are gone; and when the last that there is was over."""

    def note_added(self, latest: int, traces: int, bytes: int) -> None:
        """So far it goes now, and so many traces and bytes have come, or, below 0, gone."""

    def chunks_with(self, sought: bytes, first: int, before: int) -> Iterable[tuple[int, bytes]]:
        """Rows of `places` from one chunk to before another in which these bytes stand somewhere; the newest first."""

    def drop_oldest(self, before: int, most: int) -> int:
        """Take away traces with a smaller `seq`, at most so many; how many went."""

    def measure(self) -> int:
        """Bytes in use."""

    def give_back(self) -> None:
        """Room that nobody needs any more."""

    def erasing(self) -> AbstractContextManager[None]:
        """What is overwritten inside stands nowhere afterwards, as far as that can be done."""
