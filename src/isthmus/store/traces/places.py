"""Where a word stands: the ids and threads of traces, found without an index over all of them.

In: a word. Out: the numbers of traces that may have it; whoever asks looks at them. Traces are numbered, and so many of
them are a chunk. A place is the number of a chunk and a checksum of the word, so that all places of new traces stand
together at the end of the file, however random the words are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from zlib import crc32

from isthmus.ports.traced import TraceSummary

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

CHUNK: Final = 2_048
_BITS: Final = 32
_FIRST_LOOK: Final = 16
"""Chunks that are asked at first, the newest; then four times as many, and so on."""
_AT_A_TIME: Final = 1_024
LAST: Final = 1 << 62
"""Behind all traces."""
_ENDS: Final = "SELECT (SELECT min(seq) FROM traces), (SELECT max(seq) FROM traces)"
"""Asked apart: for both at once SQLite would look at every row."""


def add_places(places: list[tuple[int, int]], seq: int, summary: TraceSummary) -> None:
    """A thread is often called like its response. All these words are ours: they can be encoded."""
    chunk, id, response, thread = seq // CHUNK << _BITS, summary.id, summary.response, summary.thread
    places.append((chunk | crc32(id.encode()), seq))
    if response and response != id:
        places.append((chunk | crc32(response.encode()), seq))
    if thread and thread != response and thread != id:
        places.append((chunk | crc32(thread.encode()), seq))


def place_of(seq: int, word: str) -> int:
    return seq // CHUNK << _BITS | crc32(word.encode("utf-8", "surrogatepass"))


def find_places(tables: Tables, word: str) -> Iterator[int]:
    """The newest first."""
    first, last = tables.execute(_ENDS).fetchone()
    if first is None:
        return
    chunk, count = last // CHUNK, _FIRST_LOOK
    while chunk >= first // CHUNK:
        low = max(chunk - count + 1, first // CHUNK)
        places = ", ".join(str(place_of(each * CHUNK, word)) for each in range(low, chunk + 1))
        rows = tables.execute(f"SELECT seq FROM places WHERE place IN ({places}) ORDER BY place DESC, seq DESC")
        for (seq,) in rows.fetchall():
            yield seq
        chunk, count = low - 1, min(count * 4, _AT_A_TIME)


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
    rows = "SELECT place, seq FROM places WHERE place < ? ORDER BY place, seq LIMIT ?"
    bound = (_first_place(before // CHUNK), most)
    tables.execute(f"DELETE FROM places WHERE (place, seq) IN ({rows})", bound)


def _first_place(chunk: int) -> int:
    return chunk << _BITS
