"""What changes the file of the traces: each function is one transaction, called by the one thread that writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isthmus.ports.packed import Filed, Kind, PackedTrace, Pattern, encode, plain, unpack_summary
from isthmus.ports.traced import TraceSummary
from isthmus.store.traces.many import insert_many
from isthmus.store.traces.patterns import NOTED, Patterns, drop_patterns
from isthmus.store.traces.places import LAST, Gathered, add_places, drop_places, find_places, first_since, write_places
from isthmus.store.traces.rows import SQUEEZED, Kinds, Sums, read_at, squeeze
from isthmus.store.traces.schema import SLOTS

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_THREADS: Final = 10_000
"""Responses whose thread is remembered: whoever continues one does so soon."""

_SIZE: Final = "SELECT length(summary) + coalesce(length(detail), 0) FROM traces WHERE seq = ?"
_ADD: Final = "INSERT INTO traces (seq, ended, kind, summary, packed, detail, pattern)"
_data: Final = itemgetter(3, 5)
"""Of a row, what takes room: the summary, and all the rest."""


@dataclass(slots=True)
class Memory:
    """What the writer knows of the file without asking it."""

    kinds: Kinds = field(default_factory=Kinds)
    patterns: Patterns = field(default_factory=Patterns)
    threads: dict[tuple[str, str], str] = field(default_factory=dict)

    def trim(self) -> None:
        for oldest in list(islice(self.threads, max(len(self.threads) - _THREADS, 0))):
            del self.threads[oldest]


def keep(tables: Tables, memory: Memory, traces: Sequence[PackedTrace]) -> None:
    with tables.writing():
        latest, ended = tables.last()
        rows: list[tuple[Any, ...]] = []
        places: Gathered = defaultdict(bytearray)
        sums = Sums()
        threads, flags = memory.threads, tables.flags
        kind: Kind | None = None
        pattern: Pattern | None = None
        number = renewed = 0
        shared: int | None = None
        for seq, trace in enumerate(traces, latest + 1):
            filed, flag = trace.filed, flags[0]
            # Lists are in the order of `seq`, and times are found by it: neither goes back, whatever the clock does.
            if filed.ended_at < ended or filed.previous:
                changed: dict[str, Any] = {
                    "ended_at": max(ended, filed.ended_at),
                    "thread": _thread(tables, memory, filed),
                }
                trace = plain(trace)
                head = encode(replace(unpack_summary(trace.head), **changed))
                filed, trace = replace(filed, **changed), replace(trace, head=head)
            ended = filed.ended_at
            if filed.response:
                threads[filed.owner, filed.response] = filed.thread
            if filed.kind is not kind:  # many in a row are of one
                kind = filed.kind
                number = memory.kinds.find(tables, kind)
            if trace.pattern is not pattern or seq == renewed:
                pattern, renewed = trace.pattern, seq + NOTED
                shared = None if pattern is None else memory.patterns.find(tables, pattern, seq)
            detail = trace.detail
            if len(detail) > SQUEEZED:
                flag, detail = flags[1], squeeze(detail)
            # Of `bytes` Python's SQLite asks each time whether they would rather be something else: not of these.
            rows.append((seq, ended, number, bytearray(trace.head), flag, bytearray(detail), shared))
            add_places(places, seq, filed)
            sums.groups[ended // SLOTS[0], number].append(filed)
        memory.trim()
        insert_many(tables, _ADD, "", rows)
        write_places(tables, places)
        sums.write(tables)
        size = sum(map(len, chain.from_iterable(map(_data, rows))))
        tables.note_added(latest + len(rows), len(rows), size)


def forget(tables: Tables, owner: str, response: str) -> None:
    """What was forgotten stands nowhere in the file any more, nor in its log, unless somebody reads just now."""
    with tables.erasing(), tables.writing():
        for summary in of_response(tables, owner, response):
            left = replace(summary, seq=0, deleted=True)
            (size,) = tables.execute(_SIZE, (summary.seq,)).fetchone()
            change = "UPDATE traces SET summary = ?, packed = ?, detail = NULL, pattern = NULL WHERE seq = ?"
            tables.execute(change, (encode(left), tables.flags[False], summary.seq))
            tables.note_added(tables.last()[0], 0, len(encode(left)) - size)


def of_response(tables: Tables, owner: str, response: str, *, near: bool = False) -> list[TraceSummary]:
    found = [read_at(tables, seq) for seq in find_places(tables, response, near=near)]
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
    drop_places(tables, first, most)
    drop_patterns(tables, first, most)
    return gone


def _thread(tables: Tables, memory: Memory, filed: Filed) -> str:
    """That of the turn that it continues, as far as it is known here."""
    if not filed.previous:
        return filed.thread
    known = memory.threads.get((filed.owner, filed.previous))
    if known is None:
        before = of_response(tables, filed.owner, filed.previous, near=True)
        known = before[0].thread if before else filed.thread
    return known
