"""Totals: sums over many requests, read from sums over five minutes, an hour and a day.

In: a time and what is looked for. Out: groups with their sums. A long time is a few whole days, and at its two ends
hours and fives of minutes: what is read grows with the length of the time, never with the number of requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from isthmus.ports.traces import Grouping, Spread, TraceFilter, TraceTotal
from isthmus.store.traces.reads import conditions
from isthmus.store.traces.rows import FIRST_TOKEN, REAL, SUMMED, TOTAL, seconds_of
from isthmus.store.traces.schema import SLOTS

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_END: Final = 1 << 40
"""Behind all times, in the smallest steps."""
MOST_SPREADS: Final = 100
"""Steps of time up to which it is told how long things took in each: that takes far more rows than the sums."""
Part = tuple[int, int, int]
"""A level, and from which of its steps to which, the last not included."""


def totals(
    tables: Tables, owner: str | None, filter: TraceFilter, by: Grouping, step: int, most: int
) -> Sequence[TraceTotal]:
    where, values = conditions(owner, filter)
    sums: dict[Any, list[float]] = {}
    took: dict[tuple[Any, int], dict[int, int]] = {}
    for level, low, high in _even(filter, step) if by == "time" else parts(*_times(filter)):
        group = "''" if not by else f"kinds.{by}" if by != "time" else f"slot * {SLOTS[level]} / {step} * {step}"
        # Crossed: this way round SQLite reads the steps that are asked for, and looks up the kind of each.
        conditioned = " AND ".join(["kinds.kind = summed.kind", "level = ?", "slot >= ?", "slot < ?", *where])
        rest = f"AS summed CROSS JOIN kinds WHERE {conditioned} GROUP BY grouped"
        asked = (level, low, high, *values)
        summed = ", ".join(map(_sum, SUMMED))
        for grouped, *added in tables.execute(f"SELECT {group} AS grouped, {summed} FROM totals {rest}", asked):
            before = sums.get(grouped)
            sums[grouped] = added if before is None else [a + b for a, b in zip(before, added, strict=True)]
        if by == "time" and len(sums) > MOST_SPREADS:
            continue
        spread = f"SELECT {group} AS grouped, what, step, {_sum('count')} FROM spreads {rest}, what, step"
        for grouped, what, number, count in tables.execute(spread, asked):
            steps = took.setdefault((grouped, what), {})
            steps[number] = steps.get(number, 0) + count
    ordered = sorted(sums) if by == "time" else sorted(sums, key=lambda each: (-sums[each][0], each))
    return tuple(
        TraceTotal(
            group=str(each),
            **dict(zip(SUMMED, sums[each], strict=True)),  # type: ignore[arg-type]
            total=_spread(took.get((each, TOTAL), {})),
            first_token=_spread(took.get((each, FIRST_TOKEN), {})),
        )
        for each in (ordered[-most:] if by == "time" else ordered[:most])
    )


def parts(low: int, high: int, level: int = len(SLOTS) - 1) -> Iterator[Part]:
    """A time in the smallest steps, as few steps of all levels."""
    if low >= high:
        return
    if level == 0:
        yield 0, low, high
        return
    many = SLOTS[level] // SLOTS[0]
    first, last = -(-low // many), high // many
    if first >= last:
        yield from parts(low, high, level - 1)
        return
    yield from parts(low, first * many, level - 1)
    yield level, first, last
    yield from parts(last * many, high, level - 1)


def _times(filter: TraceFilter, seconds: int = SLOTS[0]) -> tuple[int, int]:
    """Whole steps: those that the time touches."""
    low = 0 if filter.since is None else int(filter.since // seconds)
    return low, _END if filter.until is None else -int(-filter.until // seconds)


def _even(filter: TraceFilter, step: int) -> Iterator[Part]:
    """The same by the largest level that a step is made of."""
    level = max(level for level, seconds in enumerate(SLOTS) if step % seconds == 0)
    yield level, *_times(filter, SLOTS[level])


def _sum(name: str) -> str:
    """As a number that both Python and the file would make of it: PostgreSQL sums whole numbers to decimal ones."""
    return f"sum({name})" if name in REAL else f"CAST(sum({name}) AS bigint)"


def _spread(steps: dict[int, int]) -> Spread:
    return Spread(tuple((seconds_of(number), steps[number]) for number in sorted(steps)))
