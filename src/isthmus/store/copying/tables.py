"""The tables of a store, as its schema tells of them: nobody keeps a list of them that a new table could be missing in.

A row is a tuple of plain values in the order of its columns, the same whichever store it comes from: a flag is a
number, as SQLite has it. Rows are in the order of their keys, text in the order of its bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec

from isthmus.errors import ConfigError

Row = tuple[Any, ...]
Kind = Literal["integer", "real", "text", "blob", "json", "words"]
"""`json` is text whose spaces and order mean nothing; where one end has it as such, both are taken so. `words` is text
that one end keeps as bytes."""
MARK: Final = "isthmus_copy"
"""The table of a target that says whose copy it is."""
LEFT: Final = {
    "isthmus_migrations": "each store has its own steps",
    MARK: "it tells of the copy itself",
    "leases": "they belong to processes that run; what was unfinished is seen to by whoever opens the copy",
    "keys_mark": "it counts changes to the keys of one store; a copy is one more",
    "scratch": "it holds nothing for long",
    "secrets": "the key of the envelopes is handed over by itself: beside a file it is a file of its own",
    **dict.fromkeys(
        ("kinds", "traces", "patterns", "places", "totals", "spreads", "trace_state"),
        "traces stay where they were made",
    ),
}
"""Tables that are not copied, and why."""
ROWS_AT_ONCE: Final = 500
BYTES_AT_ONCE: Final = 4_000_000
_PLAIN: Final = 8
"""Bytes that a number counts for."""


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    key: tuple[int, ...]
    """Where in a row the columns of its primary key stand."""

    def key_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self.key)

    def plain(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Rows as both ends write them."""
        if not {"json", "words"} & set(self.kinds):
            return rows
        return (tuple(map(_plain, self.kinds, row)) for row in rows)


@dataclass(slots=True)
class Summed:
    """What a table holds, as two figures: rows, and a checksum of all of them in their order."""

    rows: int = 0
    bytes: int = 0
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def add(self, row: Row) -> None:
        self.rows += 1
        self.bytes += size_of(row)
        self.digest.update(msgspec.msgpack.encode(row))

    @property
    def checksum(self) -> str:
        return f"{self.rows}:{self.digest.hexdigest()}"


def size_of(row: Row) -> int:
    return sum(len(value) if isinstance(value, bytes | str) else _PLAIN for value in row)


def in_batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Bounded by their number and by their size, whichever comes first."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += size_of(row)
        if len(batch) >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def common_tables(source: Sequence[Table], target: Sequence[Table], names: tuple[str, str]) -> list[Table]:
    """Those to copy: both must have the same, up to the order of their columns, in which the source's are handed on."""
    have = {table.name: table for table in target}
    common = []
    for table in source:
        other = have.pop(table.name, None)
        found = None if other is None else _merge(table, other)
        if found is None:
            raise _differ(table.name, names)
        common.append(found)
    for name in have:
        raise _differ(name, names)
    return common


def _merge(table: Table, other: Table) -> Table | None:
    theirs = dict(zip(other.columns, other.kinds, strict=True))
    if set(theirs) != set(table.columns) or [*map(table.columns.__getitem__, table.key)] != [
        *map(other.columns.__getitem__, other.key)
    ]:
        return None
    kinds: list[Kind] = []
    for name, kind in zip(table.columns, table.kinds, strict=True):
        match kind, theirs[name]:
            case (one, another) if one == another:
                kinds.append(one)
            case ("json", "text") | ("text", "json"):
                kinds.append("json")
            case ("text", "blob") | ("blob", "text"):
                kinds.append("words")
            case _:
                return None
    return replace(table, kinds=tuple(kinds))


def _plain(kind: Kind, value: Any) -> Any:
    if kind == "words" and isinstance(value, bytes):
        return value.decode()
    if kind != "json" or value is None:
        return value
    return msgspec.json.encode(msgspec.json.decode(value), order="sorted").decode()


def _differ(table: str, names: tuple[str, str]) -> ConfigError:
    return ConfigError(
        f"the table `{table}` of `{names[0]}` and that of `{names[1]}` are not the same: bring both up to date with "
        "`isthmus store migrate`, by the same version of Isthmus"
    )
