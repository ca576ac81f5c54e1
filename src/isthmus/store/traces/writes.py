"""What changes the file of the traces: each function is one transaction, called by the one thread that writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from isthmus.ports.traces import Trace, TraceSummary
from isthmus.store.traces.many import insert_many
from isthmus.store.traces.places import LAST, drop_places, find_places, first_since, place_of, words_of
from isthmus.store.traces.rows import Kinds, Sums, encode, kind_of, pack, read_at
from isthmus.store.traces.schema import SLOTS

_PAGES: Final = 512
"""Pages given back to the file system in one step."""
_PLACES: Final = 3
"""Words of one trace that are found again."""
_THREADS: Final = 10_000
"""Responses whose thread is remembered: whoever continues one does so soon."""


@dataclass(slots=True)
class Memory:
    """What the writer knows of the file without asking it."""

    kinds: Kinds = field(default_factory=Kinds)
    threads: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, summary: TraceSummary) -> None:
        if summary.response:
            self.threads[summary.owner, summary.response] = summary.thread
            if len(self.threads) > _THREADS:
                del self.threads[next(iter(self.threads))]


def keep(connection: sqlite3.Connection, memory: Memory, traces: Sequence[Trace]) -> None:
    with _transaction(connection):
        last = connection.execute("SELECT ended FROM traces ORDER BY seq DESC LIMIT 1").fetchone()
        at = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'traces'").fetchone()
        ended, latest = last[0] if last else 0.0, at[0] if at else 0
        rows: list[tuple[Any, ...]] = []
        places: list[tuple[int, int]] = []
        sums = Sums()
        for seq, trace in enumerate(traces, latest + 1):
            summary = trace.summary
            # Lists are in the order of `seq`, and times are found by it: neither goes back, whatever the clock does.
            ended = max(ended, summary.ended_at)
            if summary.ended_at != ended or summary.previous:
                thread = _thread(connection, memory, summary)
                summary = msgspec.structs.replace(summary, ended_at=ended, thread=thread)
            memory.note(summary)
            kind = memory.kinds.find(connection, kind_of(summary))
            rows.append((seq, ended, kind, encode(summary), *pack(trace)))
            places += [(place_of(seq, word), seq) for word in words_of(summary)]
            sums.add(kind, summary)
        insert_many(connection, "INSERT INTO traces", "", rows)
        insert_many(connection, "INSERT OR IGNORE INTO places", "", sorted(places))
        sums.write(connection)


def forget(connection: sqlite3.Connection, owner: str, response: str) -> None:
    """What was forgotten stands nowhere in the file any more, nor in its log, unless somebody reads just now."""
    connection.execute("PRAGMA secure_delete = ON")
    with _transaction(connection):
        for summary in of_response(connection, owner, response):
            left = msgspec.structs.replace(summary, seq=0, deleted=True)
            change = "UPDATE traces SET summary = ?, packed = 0, detail = NULL WHERE seq = ?"
            connection.execute(change, (encode(left), summary.seq))
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def of_response(connection: sqlite3.Connection, owner: str, response: str) -> list[TraceSummary]:
    found = [read_at(connection, seq) for seq in find_places(connection, response)]
    return [each for each in found if each is not None and each.response == response and each.owner == owner]


def prune(connection: sqlite3.Connection, older_than: float | None, max_bytes: int | None, most: int) -> int:
    with _transaction(connection):
        gone = 0
        if older_than is not None:
            gone = _drop(connection, first_since(connection, older_than), most)
            days = int(older_than // SLOTS[-1])  # whole ones: sums of all levels are those of the same time
            for level, seconds in enumerate(SLOTS):
                for table in ("totals", "spreads"):
                    rows = f"SELECT slot, kind FROM {table} WHERE level = ? AND slot < ? ORDER BY slot, kind LIMIT ?"
                    change = f"DELETE FROM {table} WHERE level = ? AND (slot, kind) IN ({rows})"
                    connection.execute(change, (level, level, days * (SLOTS[-1] // seconds), most))
        if not gone and max_bytes is not None and measure(connection) > max_bytes:
            gone = _drop(connection, LAST, most)
    connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
    return gone


def measure(connection: sqlite3.Connection) -> int:
    """Bytes in use."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _drop(connection: sqlite3.Connection, before: int, most: int) -> int:
    oldest = "SELECT seq FROM traces WHERE seq < ? ORDER BY seq LIMIT ?"
    gone = connection.execute(f"DELETE FROM traces WHERE seq IN ({oldest})", (before, most)).rowcount
    (first,) = connection.execute("SELECT ifnull(min(seq), 1 << 40) FROM traces").fetchone()
    drop_places(connection, first, _PLACES * most)
    return gone


def _thread(connection: sqlite3.Connection, memory: Memory, summary: TraceSummary) -> str:
    """That of the turn that it continues, as far as it is known here."""
    if not summary.previous:
        return summary.thread
    known = memory.threads.get((summary.owner, summary.previous))
    if known is None:
        before = of_response(connection, summary.owner, summary.previous)
        known = before[0].thread if before else summary.thread
    return known


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
