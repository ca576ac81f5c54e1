"""Where a word stands: the ids and threads of traces, found without an index over all of them.

In: a word. Out: the numbers of traces that may have it; whoever asks looks at them. Traces are numbered, and so many of
them are a chunk, which has one row: of each word of its traces whose it is, and a checksum. Whoever looks for a word
looks through these rows, the newest first: a million traces have some 15 MB of them, which takes 30 ms without the
interpreter. An index would find one sooner, and take a row for each word of each trace; nearly all of these are never
asked for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

from isthmus.ports.packed import Filed
from isthmus.store.traces.many import insert_many

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

CHUNK: Final = 64
"""Traces whose words stand together: a row that fits into a page of either store with room to spare."""
_DATED: Final = re.compile(r"[a-z]+_([0-9a-f]{11})[0-9a-f]{21}")
"""An id that begins with the milliseconds of when it was made (`chance.dated_text`)."""
_SLACK: Final = 600.0
"""Seconds by which the clocks of several gateways may differ."""
LAST: Final = 1 << 62
"""Behind all traces."""
_ENDS: Final = "SELECT (SELECT min(seq) FROM traces), (SELECT max(seq) FROM traces)"
"""Asked apart: for both at once SQLite would look at every row."""
pack_place: Final = Struct(">HI").pack
"""Which trace of its chunk, and the checksum of its word."""
_LENGTH, _BEFORE = 6, 2
"""Bytes of a place, and of it those before the checksum."""
_ADD: Final = ("INSERT INTO places (chunk, words)", "ON CONFLICT (chunk) DO UPDATE SET words = excluded.words")

Gathered = defaultdict[int, bytearray]
"""Chunk → the places that come to it."""


def add_places(gathered: Gathered, seq: int, filed: Filed) -> None:
    """A thread is often called like its response. All these words are ours: they can be encoded."""
    chunk, at = divmod(seq, CHUNK)
    places, id, response, thread = gathered[chunk], filed.id, filed.response, filed.thread
    places += pack_place(at, crc32(id.encode()))
    if response and response != id:
        places += pack_place(at, crc32(response.encode()))
    if thread and thread != response and thread != id:
        places += pack_place(at, crc32(thread.encode()))


def write_places(tables: Tables, gathered: Gathered) -> None:
    """Behind those that are there: only the first chunk of a group may have some."""
    if not gathered:
        return
    first = min(gathered)
    there = tables.execute("SELECT words FROM places WHERE chunk = ?", (first,)).fetchone()
    if there is not None:
        gathered[first][:0] = there[0]
    rows = list(gathered.items())
    insert_many(tables, *_ADD, rows, rows[-1])


def find_places(tables: Tables, word: str, *, near: bool = False) -> Iterator[int]:
    """The newest first. An id of ours tells when it was made: nothing before that can have it, unless somebody has set
    the clock, and so all the rest is looked through where nothing is found; not if it must be `near`."""
    sought = crc32(word.encode("utf-8", "surrogatepass")).to_bytes(4, "big")
    first, found = _first_chunk(tables, word), False
    for seq in _look_through(tables, sought, first, LAST):
        found = True
        yield seq
    if first and not found and not near:
        yield from _look_through(tables, sought, 0, first)


def _first_chunk(tables: Tables, word: str) -> int:
    dated = _DATED.fullmatch(word)
    return 0 if dated is None else first_since(tables, int(dated[1], 16) / 1_000 - _SLACK) // CHUNK


def _look_through(tables: Tables, sought: bytes, first: int, before: int) -> Iterator[int]:
    for chunk, words in tables.chunks_with(sought, first, before):
        yield from sorted({chunk * CHUNK + at for at in _find(bytes(words), sought)}, reverse=True)


def _find(words: bytes, sought: bytes) -> Iterator[int]:
    at = words.find(sought)
    while at >= 0:
        if at % _LENGTH == _BEFORE:
            yield int.from_bytes(words[at - _BEFORE : at], "big")
        at = words.find(sought, at + 1)


def first_since(tables: Tables, at: float) -> int:
    """The first that ended at this time or later; they are numbered in that order, so halving finds it."""
    low, high = tables.execute(_ENDS).fetchone()
    if low is None:
        return LAST
    high += 1
    while low < high:
        middle = (low + high) // 2
        row = tables.execute("SELECT seq, ended FROM traces WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,)).fetchone()
        if row is None or row[1] >= at:
            high = middle
        else:
            low = row[0] + 1
    row = tables.execute("SELECT seq FROM traces WHERE seq >= ? ORDER BY seq LIMIT 1", (low,)).fetchone()
    return LAST if row is None else int(row[0])


def drop_places(tables: Tables, before: int, most: int) -> None:
    """Of chunks that have no trace any more; `before` is the oldest that there is."""
    chunks = "SELECT chunk FROM places WHERE chunk < ? ORDER BY chunk LIMIT ?"
    tables.execute(f"DELETE FROM places WHERE chunk IN ({chunks})", (before // CHUNK, most))
