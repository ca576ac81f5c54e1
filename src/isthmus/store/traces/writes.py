"""What changes the file of the traces: each function is one transaction, called by the one thread that writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from isthmus.ports.traces import Trace, TraceSummary
from isthmus.store.traces.rows import Kinds, Sums, encode, kind_of, pack, read_summary
from isthmus.store.traces.schema import SLOT

_PAGES: Final = 512
"""Pages given back to the file system in one step."""


def keep(connection: sqlite3.Connection, kinds: Kinds, traces: Sequence[Trace]) -> None:
    with _transaction(connection):
        (last,) = connection.execute("SELECT ifnull(max(ended), 0) FROM traces").fetchone()
        sums = Sums()
        for trace in traces:
            summary = trace.summary
            # Lists are in the order of `seq`, and times are found by it: neither goes back, whatever the clock does.
            last = max(last, summary.ended_at)
            if summary.ended_at != last or summary.previous:
                thread = _thread(connection, summary)
                summary = msgspec.structs.replace(summary, ended_at=last, thread=thread)
            kind = kinds.find(connection, kind_of(summary))
            row = (summary.id, summary.response, summary.thread, last, kind, encode(summary))
            made = connection.execute(_ADD, row)
            connection.execute("INSERT INTO details VALUES (?, ?, ?)", (made.lastrowid, *pack(trace)))
            sums.add(kind, summary)
        sums.write(connection)


_ADD: Final = "INSERT INTO traces (id, response, thread, ended, kind, summary) VALUES (?, ?, ?, ?, ?, ?)"


def forget(connection: sqlite3.Connection, owner: str, response: str) -> None:
    with _transaction(connection):
        rows = connection.execute("SELECT seq, summary FROM traces WHERE response = ?", (response,)).fetchall()
        for seq, data in rows:
            summary = read_summary(seq, data)
            if summary.owner == owner:
                left = msgspec.structs.replace(summary, seq=0, deleted=True)
                connection.execute("UPDATE traces SET summary = ? WHERE seq = ?", (encode(left), seq))
                connection.execute("DELETE FROM details WHERE seq = ?", (seq,))


def prune(connection: sqlite3.Connection, older_than: float | None, max_bytes: int | None, most: int) -> int:
    with _transaction(connection):
        gone = 0
        if older_than is not None:
            gone = _drop(connection, "ended < ?", older_than, most)
            old = int(older_than // SLOT)
            for table in ("totals", "spreads"):
                rows = f"(SELECT slot, kind FROM {table} WHERE slot < ? ORDER BY slot, kind LIMIT ?)"
                connection.execute(f"DELETE FROM {table} WHERE (slot, kind) IN {rows}", (old, most))
        if not gone and max_bytes is not None and measure(connection) > max_bytes:
            gone = _drop(connection, "seq < ?", 1 << 62, most)
    connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
    return gone


def measure(connection: sqlite3.Connection) -> int:
    """Bytes in use."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _drop(connection: sqlite3.Connection, where: str, bound: float, most: int) -> int:
    oldest = f"SELECT seq FROM traces WHERE {where} ORDER BY seq LIMIT ?"
    connection.execute(f"DELETE FROM details WHERE seq IN ({oldest})", (bound, most))
    return connection.execute(f"DELETE FROM traces WHERE seq IN ({oldest})", (bound, most)).rowcount


def _thread(connection: sqlite3.Connection, summary: TraceSummary) -> str:
    """That of the turn that it continues, as far as it is known here."""
    if not summary.previous:
        return summary.thread
    rows = connection.execute("SELECT thread, summary FROM traces WHERE response = ?", (summary.previous,))
    for thread, data in rows:
        if read_summary(0, data).owner == summary.owner:
            return str(thread)
    return summary.thread


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
