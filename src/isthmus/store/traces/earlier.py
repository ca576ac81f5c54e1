"""Files of an earlier version: what becomes of them when they are opened.

In version 1 each word of a trace had a row of its own in `places`: the number of a chunk of 2,048 traces above 32 bits
of checksum, and the number of the trace; and nothing was kept once for many traces.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from typing import Final

from isthmus.store.traces.places import CHUNK, pack_place

_CHECKSUM: Final = (1 << 32) - 1
_MANY: Final = 1_000
"""Chunks that are held before they are written."""


def bring_up(connection: sqlite3.Connection) -> None:
    """From version 1 to 2, in the transaction of whoever calls."""
    connection.execute("ALTER TABLE traces ADD COLUMN pattern INTEGER")
    connection.execute(
        "CREATE TABLE patterns (pattern INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE,"
        " texts BLOB NOT NULL, last INTEGER NOT NULL)"
    )
    connection.execute("CREATE INDEX patterns_last ON patterns (last)")
    _gather_places(connection)


def _gather_places(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE gathered (chunk INTEGER PRIMARY KEY, words BLOB NOT NULL)")
    gathered: defaultdict[int, bytearray] = defaultdict(bytearray)
    last = -1
    for place, seq in connection.execute("SELECT place, seq FROM places ORDER BY seq"):
        chunk, at = divmod(seq, CHUNK)
        if chunk != last and len(gathered) >= _MANY:
            connection.executemany("INSERT INTO gathered VALUES (?, ?)", gathered.items())
            gathered.clear()
        gathered[chunk] += pack_place(at, place & _CHECKSUM)
        last = chunk
    connection.executemany("INSERT INTO gathered VALUES (?, ?)", gathered.items())
    connection.execute("DROP TABLE places")
    connection.execute("ALTER TABLE gathered RENAME TO places")
