"""Questions about traces: what one costs depends on what it answers, not on how many traces there are."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from isthmus.ports.packed import unpack
from isthmus.ports.traced import Trace, TraceSummary
from isthmus.ports.traces import TraceFilter, TracePage, TraceStats
from isthmus.store.traces.patterns import Filler
from isthmus.store.traces.places import LAST, find_places, first_since
from isthmus.store.traces.rows import read_at, read_summary, unsqueeze

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_PLAIN: Final = ("provider", "model", "outcome", "code", "door", "key", "client")
_ORDERS: Final[tuple[Literal["asc", "desc"], ...]] = ("asc", "desc")
_THEIR_IDS: Final = ("chatcmpl-", "msg_")
_AT_ONCE: Final = 200
"""Rows fetched by their numbers in one question."""


def find(tables: Tables, owner: str | None, id: str) -> Trace | None:
    summary = find_summary(tables, owner, id)
    return None if summary is None else read_whole(tables, summary)


def read_whole(tables: Tables, summary: TraceSummary) -> Trace:
    """What is left of it, where its response was deleted."""
    row = tables.execute("SELECT packed, detail, pattern FROM traces WHERE seq = ?", (summary.seq,)).fetchone()
    if row is None or row[1] is None:
        return Trace(summary=summary)
    squeezed, data, pattern = row
    return unpack(summary, Filler(tables).detail(pattern, unsqueeze(squeezed, data)))


def find_summary(tables: Tables, owner: str | None, id: str) -> TraceSummary | None:
    for word in filter(None, (id, known_as(id))):
        for seq in find_places(tables, word):
            summary = read_at(tables, seq)
            if summary is not None and word in (summary.id, summary.response) and owner in (None, summary.owner):
                return summary
    return None


def known_as(id: str) -> str:
    """The response behind the id that a client of another door knows; empty: it is none of those."""
    return next((f"resp_{id.removeprefix(door)}" for door in _THEIR_IDS if id.startswith(door)), "")


def list_traces(
    tables: Tables,
    owner: str | None,
    filter: TraceFilter,
    limit: int,
    after: int | None,
    order: Literal["asc", "desc"],
) -> TracePage:
    low, high = _bounds(tables, filter)
    if after is not None:
        low, high = (max(low, after + 1), high) if order == "asc" else (low, min(high, after))
    kinds = _kinds(tables, owner, filter)
    found = _newest(tables, filter, kinds, low, high, limit + 1, order)
    return TracePage(tuple(_summaries(tables, found[:limit])), len(found) > limit)


def walk(tables: Tables, owner: str | None, id: str, most: int) -> Sequence[TraceSummary]:
    at = find_summary(tables, owner, id)
    if at is None:
        return ()
    if not at.thread:
        return (at,)
    page = list_traces(tables, owner, TraceFilter(thread=at.thread), most, None, "desc")
    return tuple(reversed(page.traces))


def stats(tables: Tables, owner: str | None) -> TraceStats:
    kinds = _kinds(tables, owner, TraceFilter())
    some = "" if kinds is None else f" WHERE kind IN ({_listed(kinds)})"
    (count,) = tables.execute(f"SELECT count(*) FROM traces{some}").fetchone()
    ends = [_newest(tables, TraceFilter(), kinds, 0, LAST, 1, order) for order in _ORDERS]
    oldest, newest = ([summary.ended_at for summary in _summaries(tables, end)] for end in ends)
    return TraceStats(
        traces=count,
        bytes=tables.measure(),
        oldest=oldest[0] if oldest else None,
        newest=newest[0] if newest else None,
        latest=ends[1][0] if ends[1] else 0,
    )


# ── which ones ───────────────────────────────────────────────────────────────────────────────────────


def _bounds(tables: Tables, filter: TraceFilter) -> tuple[int, int]:
    """First and last place, the last not included: `ended` goes the same way as `seq`."""
    return (
        0 if filter.since is None else first_since(tables, filter.since),
        LAST if filter.until is None else first_since(tables, filter.until),
    )


def conditions(owner: str | None, filter: TraceFilter) -> tuple[list[str], list[Any]]:
    where: list[str] = [] if owner is None else ["owner = ?"]
    values: list[Any] = [] if owner is None else [owner]
    for name in _PLAIN:
        value = getattr(filter, name)
        if value:
            where.append(f"{name} = ?")
            values.append(value)
    if filter.changed is not None:
        where.append("changed = ?")
        values.append(filter.changed)
    return where, values


def _kinds(tables: Tables, owner: str | None, filter: TraceFilter) -> list[int] | None:
    """`None`: any."""
    where, values = conditions(owner, filter)
    if not where:
        return None
    found = [row[0] for row in tables.execute(f"SELECT kind FROM kinds WHERE {' AND '.join(where)}", values)]
    (count,) = tables.execute("SELECT count(*) FROM kinds").fetchone()
    return None if len(found) == count else found


def _newest(
    tables: Tables,
    filter: TraceFilter,
    kinds: list[int] | None,
    low: int,
    high: int,
    limit: int,
    order: Literal["asc", "desc"],
) -> list[int]:
    """The places of so many of them, in this order."""
    rest = f"seq >= ? AND seq < ? ORDER BY seq {order} LIMIT ?"
    bound = (low, high, limit)
    if filter.thread:
        return _of_thread(tables, filter.thread, kinds, low, high, limit, order)
    if kinds is None:
        return [row[0] for row in tables.execute(f"SELECT seq FROM traces WHERE {rest}", bound)]
    question = f"SELECT seq FROM traces WHERE kind = ? AND {rest}"
    each = [[row[0] for row in tables.execute(question, (kind, *bound))] for kind in kinds]
    merged = heapq.merge(*each, reverse=order == "desc")
    return [seq for seq, _ in zip(merged, range(limit), strict=False)]


def _of_thread(
    tables: Tables,
    thread: str,
    kinds: list[int] | None,
    low: int,
    high: int,
    limit: int,
    order: Literal["asc", "desc"],
) -> list[int]:
    """Looked at a few at a time: those of a client that always begins alike may be very many."""
    places = [seq for seq in find_places(tables, thread) if low <= seq < high]
    places.sort(reverse=order == "desc")
    found: list[int] = []
    for start in range(0, len(places), _AT_ONCE):
        some = [each.seq for each in _summaries(tables, places[start : start + _AT_ONCE]) if each.thread == thread]
        if kinds is not None:
            question = f"SELECT seq FROM traces WHERE seq IN ({_listed(some)}) AND kind IN ({_listed(kinds)})"
            kept = {row[0] for row in tables.execute(question)}
            some = [seq for seq in some if seq in kept]
        found += some
        if len(found) >= limit:
            break
    return found[:limit]


def _summaries(tables: Tables, places: list[int]) -> list[TraceSummary]:
    found: dict[int, TraceSummary] = {}
    filler = Filler(tables)
    for start in range(0, len(places), _AT_ONCE):
        some = _listed(places[start : start + _AT_ONCE])
        rows = tables.execute(f"SELECT seq, summary, pattern FROM traces WHERE seq IN ({some})").fetchall()
        for seq, data, pattern in rows:
            found[seq] = read_summary(seq, filler.head(pattern, data))
    return [found[place] for place in places if place in found]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "NULL"
