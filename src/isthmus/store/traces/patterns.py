"""What many traces have in common, kept once: by whoever writes them, and for whoever reads.

A row of `patterns` has two texts with gaps; traces that have its number keep only what goes into the gaps. `last` tells
about how far it was used, so that patterns go when the last of their traces went: whoever uses one writes that down
anew after so many traces, and none is dropped before twice as many have gone by.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from isthmus.errors import StoreUnavailable
from isthmus.ports.packed import Pattern, fill

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

MOST_KNOWN: Final = 1_000
"""Patterns whose number is remembered by whoever writes."""
NOTED: Final = 512
"""Traces after which it is noted anew that a pattern is in use."""
_NOTE: Final = """INSERT INTO patterns (digest, texts, last) VALUES (?, ?, ?)
    ON CONFLICT (digest) DO UPDATE SET last = excluded.last"""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Pattern).decode


class Patterns:
    """What the writer knows of them; the file may be shared with others, who add some and drop some."""

    def __init__(self) -> None:
        self._known: dict[Pattern, tuple[int, int]] = {}
        """The number of each, and up to which trace it was noted."""

    def find(self, tables: Tables, pattern: Pattern, seq: int) -> int:
        """The number of the one that this trace has."""
        number: int
        number, noted = self._known.get(pattern, (0, -NOTED))
        if seq - noted < NOTED:
            return number
        texts = _encode(pattern)
        digest = blake2b(texts, digest_size=16).digest()
        tables.execute(_NOTE, (digest, texts, seq))
        (number,) = tables.execute("SELECT pattern FROM patterns WHERE digest = ?", (digest,)).fetchone()
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[pattern] = number, seq
        return number


def drop_patterns(tables: Tables, before: int, most: int) -> None:
    """Of which no trace is left; `before` is the oldest that there is."""
    unused = "SELECT pattern FROM patterns WHERE last < ? ORDER BY last LIMIT ?"
    tables.execute(f"DELETE FROM patterns WHERE pattern IN ({unused})", (before - 2 * NOTED, most))


class Filler:
    """Puts together what one question meets."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[int, Pattern] = {}

    def head(self, number: int | None, data: bytes) -> bytes:
        return data if number is None else fill(self._find(number).head, bytes(data))

    def detail(self, number: int | None, data: bytes) -> bytes:
        return data if number is None else fill(self._find(number).detail, bytes(data))

    def _find(self, number: int) -> Pattern:
        known = self._known.get(number)
        if known is None:
            row = self._tables.execute("SELECT texts FROM patterns WHERE pattern = ?", (number,)).fetchone()
            if row is None:
                raise StoreUnavailable("the traces are damaged: what some have in common is missing")
            known = self._known[number] = _decode(row[0])
        return known
