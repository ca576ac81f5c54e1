"""What a copy needs of a store, at either end: rows out, as of one moment, and rows in, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from isthmus.store.copying.tables import Row, Table


class Mark(msgspec.Struct, frozen=True):
    """Whose copy a store is."""

    source: str
    began_at: float
    checksums: dict[str, str] | None = None
    """Of its tables, when the copy was complete; `None`: it never was."""


class End(Protocol):
    @property
    def name(self) -> str:
        """What people know it by; without a password."""

    def tables(self) -> list[Table]:
        """Those that are copied, in the order of their names."""

    def look(self) -> None:
        """From now on, what is read is as of this moment."""

    def count(self, table: Table) -> int: ...

    def read(self, table: Table) -> Iterator[Row]:
        """All rows, in the order of their keys."""

    def fit(self, table: Table, rows: Iterable[Row]) -> Iterable[Row]:
        """Rows of another end as this one can hold them."""

    def replace(self, table: Table, gone: Sequence[Row], rows: Sequence[Row]) -> None:
        """Take away the rows with these keys and put these there, in one step."""

    def clear(self) -> None:
        """Take away everything, also what is never copied."""

    def settle(self, tables: Sequence[Table]) -> None:
        """All rows are there: new ones get other keys."""

    def mark(self) -> Mark | None: ...

    def note(self, mark: Mark) -> None: ...

    def envelope_key(self) -> bytes | None: ...

    def set_envelope_key(self, key: bytes) -> None: ...

    def close(self) -> None: ...
