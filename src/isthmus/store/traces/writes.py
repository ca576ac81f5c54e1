"""What changes the file of the traces: each function is one transaction, called by the one thread that writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isthmus.ports.packed import PackedTrace, encode
from isthmus.ports.traced import TraceSummary
from isthmus.store.traces.many import insert_many
from isthmus.store.traces.places import LAST, add_places, drop_places, find_places, first_since
from isthmus.store.traces.rows import Kinds, Sums, kind_of, read_at, squeeze
from isthmus.store.traces.schema import SLOTS

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_PLACES: Final = 3
"""Words of one trace that are found again."""
_THREADS: Final = 10_000
"""Responses whose thread is remembered: whoever continues one does so soon."""

_SIZE: Final = "SELECT length(summary) + coalesce(length(detail), 0) FROM traces WHERE seq = ?"
_data: Final = itemgetter(3, 5)
"""Of a row, what takes room: the summary, and all the rest."""


@dataclass(slots=True)
class Memory:
    """What the writer knows of the file without asking it."""

    kinds: Kinds = field(default_factory=Kinds)
    threads: dict[tuple[str, str], str] = field(default_factory=dict)

    def trim(self) -> None:
        for oldest in list(islice(self.threads, max(len(self.threads) - _THREADS, 0))):
            del self.threads[oldest]


def keep(tables: Tables, memory: Memory, traces: Sequence[PackedTrace]) -> None:
    with tables.writing():
        last = tables.execute("SELECT ended FROM traces ORDER BY seq DESC LIMIT 1").fetchone()
        ended, latest = last[0] if last else 0.0, tables.latest()
        rows: list[tuple[Any, ...]] = []
        places: list[tuple[int, int]] = []
        sums = Sums()
        threads, find_kind, flags = memory.threads, memory.kinds.find, tables.flags
        for seq, trace in enumerate(traces, latest + 1):
            summary, head = trace.summary, trace.head
            # Lists are in the order of `seq`, and times are found by it: neither goes back, whatever the clock does.
            if summary.ended_at < ended or summary.previous:
                thread = _thread(tables, memory, summary)
                summary = msgspec.structs.replace(summary, ended_at=max(ended, summary.ended_at), thread=thread)
                head = encode(summary)
            ended = summary.ended_at
            if summary.response:
                threads[summary.owner, summary.response] = summary.thread
            kind = find_kind(tables, kind_of(summary))
            squeezed, data = squeeze(trace.detail)
            # Of `bytes` Python's SQLite asks each time whether they would rather be something else: not of these.
            rows.append((seq, ended, kind, bytearray(head), flags[squeezed], bytearray(data)))
            add_places(places, seq, summary)
            sums.groups[ended // SLOTS[0], kind].append(summary)
        memory.trim()
        insert_many(tables, "INSERT INTO traces", "", rows)
        insert_many(tables, "INSERT INTO places", "ON CONFLICT DO NOTHING", places)
        sums.write(tables)
        size = sum(map(len, chain.from_iterable(map(_data, rows))))
        tables.note_added(latest + len(rows), len(rows), size)


def forget(tables: Tables, owner: str, response: str) -> None:
    """What was forgotten stands nowhere in the file any more, nor in its log, unless somebody reads just now."""
    with tables.erasing(), tables.writing():
        for summary in of_response(tables, owner, response):
            left = msgspec.structs.replace(summary, seq=0, deleted=True)
            (size,) = tables.execute(_SIZE, (summary.seq,)).fetchone()
            change = "UPDATE traces SET summary = ?, packed = ?, detail = NULL WHERE seq = ?"
            tables.execute(change, (encode(left), tables.flags[False], summary.seq))
            tables.note_added(tables.latest(), 0, len(encode(left)) - size)


def of_response(tables: Tables, owner: str, response: str) -> list[TraceSummary]:
    found = [read_at(tables, seq) for seq in find_places(tables, response)]
    return [each for each in found if each is not None and each.response == response and each.owner == owner]


def prune(tables: Tables, older_than: float | None, max_bytes: int | None, most: int) -> int:
    with tables.writing():
        gone = 0
        if older_than is not None:
            gone = _drop(tables, first_since(tables, older_than), most)
            days = int(older_than // SLOTS[-1])  # whole ones: sums of all levels are those of the same time
            for level, seconds in enumerate(SLOTS):
                for table in ("totals", "spreads"):
                    rows = f"SELECT slot, kind FROM {table} WHERE level = ? AND slot < ? ORDER BY slot, kind LIMIT ?"
                    change = f"DELETE FROM {table} WHERE level = ? AND (slot, kind) IN ({rows})"
                    tables.execute(change, (level, level, days * (SLOTS[-1] // seconds), most))
        if not gone and max_bytes is not None and tables.measure() > max_bytes:
            gone = _drop(tables, LAST, most)
    tables.give_back()
    return gone


def _drop(tables: Tables, before: int, most: int) -> int:
    gone = tables.drop_oldest(before, most)
    (first,) = tables.execute(f"SELECT coalesce(min(seq), {1 << 40}) FROM traces").fetchone()
    drop_places(tables, first, _PLACES * most)
    return gone


def _thread(tables: Tables, memory: Memory, summary: TraceSummary) -> str:
    """That of the turn that it continues, as far as it is known here."""
    if not summary.previous:
        return summary.thread
    known = memory.threads.get((summary.owner, summary.previous))
    if known is None:
        before = of_response(tables, summary.owner, summary.previous)
        known = before[0].thread if before else summary.thread
    return known
