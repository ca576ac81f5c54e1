"""Everything that one store holds, copied to another and compared there.

In: two ends. Out: what was copied. The source is read as of one moment, also while a gateway writes to it. Both ends
are read in the order of their keys and only what differs is written, so that a copy that was killed goes on where it
was, and a second one brings what has come since. At the end the target is read again, and its checksums are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from isthmus.errors import ConfigError
from isthmus.store.copying.ends import End, Mark
from isthmus.store.copying.tables import Row, Summed, Table, common_tables, in_batches, size_of

Manner = Literal["new", "force", "resume"]
"""What may stand in the target: nothing; anything, which goes; an earlier copy of the same source."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far it is."""

    table: str
    rows: int
    """Of all tables so far."""
    every: int
    """Rows of the source."""
    bytes: int
    checking: bool = False


@dataclass(frozen=True, slots=True)
class Copied:
    source: str
    target: str
    tables: dict[str, int]
    """How many rows each has."""
    rows: int
    bytes: int
    written: int
    """Rows that were not there yet."""
    envelope_key: bool
    """Whether there was one to copy."""


Told = Callable[[Step], None]


def copy_all(source: End, target: End, *, manner: Manner = "new", told: Told = lambda step: None) -> Copied:
    source.look()
    target.look()
    tables = common_tables(source.tables(), target.tables(), (source.name, target.name))
    began = _check_target(source, target, tables, manner)
    target.note(Mark(source.name, began))
    every = sum(source.count(table) for table in tables)
    if manner == "force":
        target.clear()
        target.look()
    copying = _Copying(source, target, every, told)
    sums = {table.name: copying.table(table, compare=manner == "resume") for table in tables}
    target.settle(tables)
    key = source.envelope_key()
    if key is not None:
        target.set_envelope_key(key)
    _verify(target, tables, sums, copying)
    target.note(Mark(source.name, began, {name: each.checksum for name, each in sums.items()}))
    rows = {name: each.rows for name, each in sums.items()}
    size = sum(each.bytes for each in sums.values())
    return Copied(source.name, target.name, rows, every, size, copying.written, key is not None)


def _check_target(source: End, target: End, tables: list[Table], manner: Manner) -> float:
    """When the copy was begun."""
    mark = target.mark()
    if manner == "resume" and mark is not None:
        if mark.source != source.name:
            raise ConfigError(f"`{target.name}` is a copy of `{mark.source}`, not of `{source.name}`: nothing was done")
        if mark.checksums is not None and mark.checksums != {
            t.name: _sum(t.plain(target.read(t))).checksum for t in tables
        }:
            raise ConfigError(
                f"`{target.name}` was written to since it was copied: to go on would undo that. `--force` copies "
                "everything anew, and what is there now is gone"
            )
        return mark.began_at
    if manner != "force" and any(target.count(table) for table in tables):
        half = mark is not None and mark.checksums is None
        then = "`--resume` goes on with the copy that was broken off there, " if half else ""
        raise ConfigError(
            f"`{target.name}` is not empty: {then}`--force` replaces all that is there; or name another target"
        )
    return time.time()


class _Copying:
    def __init__(self, source: End, target: End, every: int, told: Told) -> None:
        self.source = source
        self.target = target
        self.every = every
        self.told = told
        self.written = 0
        self._rows = self._bytes = 0

    def table(self, table: Table, *, compare: bool) -> Summed:
        summed = Summed()
        there = _Peeked(table.plain(self.target.read(table)) if compare else ())
        for batch in in_batches(self.target.fit(table, table.plain(self.source.read(table)))):
            for row in batch:
                summed.add(row)
            old = list(there.up_to(table, table.key_of(batch[-1])))
            self._write(table, old, batch)
            self._rows += len(batch)
            self._bytes += sum(map(size_of, batch))
            self.told(Step(table.name, self._rows, self.every, self._bytes))
        for batch in in_batches(there):
            self._write(table, batch, [])
        return summed

    def _write(self, table: Table, old: list[Row], new: list[Row]) -> None:
        kept = set(old) & set(new) if old else set()
        gone = [table.key_of(row) for row in old if row not in kept]
        rows = [row for row in new if row not in kept]
        if gone or rows:
            self.target.replace(table, gone, rows)
            self.written += len(rows)

    def checked(self, table: str, rows: int) -> None:
        self.told(Step(table, rows, self.every, self._bytes, checking=True))


class _Peeked:
    """Rows, of which the next one can be looked at."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def __iter__(self) -> Iterator[Row]:
        while self._next is not None:
            row, self._next = self._next, next(self._rows, None)
            yield row

    def up_to(self, table: Table, key: Row) -> Iterator[Row]:
        while self._next is not None and table.key_of(self._next) <= key:
            row, self._next = self._next, next(self._rows, None)
            yield row


def _verify(target: End, tables: list[Table], sums: dict[str, Summed], copying: _Copying) -> None:
    target.look()
    seen = 0
    for table in tables:
        found = Summed()
        for batch in in_batches(table.plain(target.read(table))):
            for row in batch:
                found.add(row)
            seen += len(batch)
            copying.checked(table.name, seen)
        if found.checksum != sums[table.name].checksum:
            raise ConfigError(
                f"the table `{table.name}` of `{target.name}` has {found.rows:,} rows that are not the "
                f"{sums[table.name].rows:,} of the source: somebody else wrote to it meanwhile. Stop whoever uses it, "
                "and copy again with `--resume`"
            )


def _sum(rows: Iterable[Row]) -> Summed:
    summed = Summed()
    for row in rows:
        summed.add(row)
    return summed
