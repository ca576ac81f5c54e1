"""Traces as rows: how one is packed, which kind it is, and what it adds to the totals."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isthmus.ports.packed import KIND, Filed, Kind, unpack_summary
from isthmus.ports.traced import TraceSummary
from isthmus.store.traces.many import insert_many
from isthmus.store.traces.patterns import Filler
from isthmus.store.traces.schema import SLOTS

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

FAILED: Final = ("failed", "refused")
TOTAL, FIRST_TOKEN = 0, 1
"""What a spread is of."""
MOST_KINDS: Final = 5_000
"""Models have whatever names clients send: beyond so many kinds, further ones lose the model's name."""
OTHER: Final = "(other)"
SQUEEZED: Final = 4_096
"""Bytes of a detail from which on it is worth compressing."""
_STEPS: Final = 4
"""Steps of a spread within one doubling."""
_MOST_STEPS: Final = 40 * _STEPS
"""The last one is above thirty years."""

_OUTCOME: Final = KIND.index("outcome")
_figures: Final = attrgetter(
    *("input_tokens", "output_tokens", "cached_tokens", "retries", "degraded", "ignored", "total")
)
_cost, _total = attrgetter("cost"), attrgetter("total")


def squeeze(detail: bytes) -> bytes:
    return zlib.compress(detail, 1)


def unsqueeze(squeezed: bool, data: bytes) -> bytes:
    return zlib.decompress(data) if squeezed else data


def read_summary(seq: int, data: bytes) -> TraceSummary:
    return msgspec.structs.replace(unpack_summary(data), seq=seq)


def read_at(tables: Tables, seq: int) -> TraceSummary | None:
    row = tables.execute("SELECT summary, pattern FROM traces WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else read_summary(seq, Filler(tables).head(row[1], row[0]))


def seconds_of(step: int) -> float:
    return float(2 ** (step / _STEPS) / 1000)


step_of: Final[Callable[[float], int]] = partial(bisect_left, [seconds_of(step) for step in range(_MOST_STEPS)])
"""Seconds → the step that they fall into."""


class Kinds:
    """What is known of the kinds in the file; it may be shared with other processes, which add some."""

    def __init__(self) -> None:
        self._known: dict[Kind, int] = {}

    def find(self, tables: Tables, kind: Kind) -> int:
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = self._look(tables, kind)
        return found

    def _look(self, tables: Tables, kind: Kind) -> int:
        where = " AND ".join(f"{name} = ?" for name in KIND)
        row = tables.execute(f"SELECT kind FROM kinds WHERE {where}", kind).fetchone()
        if row is not None:
            return int(row[0])
        count = tables.execute("SELECT count(*) FROM kinds").fetchone()[0]
        if count >= MOST_KINDS and kind[5] != OTHER:
            self._known = {known: key for known, key in self._known.items() if key <= MOST_KINDS}
            return self.find(tables, (*kind[:5], OTHER, *kind[6:]))
        places = ", ".join("?" * len(KIND))
        tables.execute(f"INSERT INTO kinds ({', '.join(KIND)}) VALUES ({places})", kind)
        return int(tables.execute(f"SELECT kind FROM kinds WHERE {where}", kind).fetchone()[0])


class Sums:
    """What a group of traces adds to the totals, by the smallest step: many of them make one row."""

    def __init__(self) -> None:
        self.groups: defaultdict[tuple[float, int], list[Filed]] = defaultdict(list)
        """Step and kind → those of both."""

    def write(self, tables: Tables) -> None:
        totals: dict[tuple[int, ...], list[float]] = {}
        spreads: dict[tuple[int, ...], int] = {}
        for (step, kind), group in self.groups.items():
            slot = int(step)
            added = _sum(group)
            steps = {
                TOTAL: Counter(map(step_of, map(_total, group))),
                FIRST_TOKEN: Counter([step_of(each.first_token) for each in group if each.first_token is not None]),
            }
            for level, seconds in enumerate(SLOTS):
                place = level, slot // (seconds // SLOTS[0]), kind
                sums = totals.get(place)
                totals[place] = added if sums is None else [a + b for a, b in zip(sums, added, strict=True)]
                for what, counted in steps.items():
                    for height, count in counted.items():
                        spreads[*place, what, height] = spreads.get((*place, what, height), 0) + count
        _add(tables, _ADD_TOTALS, [(*place, *sums) for place, sums in totals.items()], 3)
        _add(tables, _ADD_SPREADS, [(*step, count) for step, count in spreads.items()], 5)


def _add(tables: Tables, upsert: tuple[str, str], rows: Sequence[tuple[Any, ...]], place: int) -> None:
    """`place`: how many values tell where a row stands; the others are added to what is there."""
    nothing = (*rows[0][:place], *[0] * (len(rows[0]) - place)) if rows else None
    insert_many(tables, *upsert, rows, nothing)


def _sum(group: Sequence[Filed]) -> list[float]:
    """In the order of `SUMMED`. How they ended is part of their kind: all failed, or none."""
    costs = list(map(_cost, group))
    spent, made, cached, retries, degraded, ignored, seconds = map(sum, zip(*map(_figures, group), strict=True))
    failed = len(group) if group[0].kind[_OUTCOME] in FAILED else 0
    cost, unpriced = sum(filter(None, costs), 0.0), costs.count(None)
    return [len(group), failed, spent, made, cached, cost, unpriced, retries, degraded, ignored, seconds]


SUMMED: Final = (
    *("requests", "failed", "input_tokens", "output_tokens", "cached_tokens", "cost", "unpriced", "retries"),
    *("degraded", "ignored", "seconds"),
)


REAL: Final = ("cost", "seconds")
"""Of these, what is no whole number."""


def _upsert(table: str, place: Sequence[str], added: Iterable[str]) -> tuple[str, str]:
    """What stands before the rows, and behind them."""
    names = [*place, *added]
    sums = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in names[len(place) :])
    return (
        f"INSERT INTO {table} ({', '.join(names)})",
        f"ON CONFLICT ({', '.join(place)}) DO UPDATE SET {sums}",
    )


_ADD_TOTALS: Final = _upsert("totals", ("level", "slot", "kind"), SUMMED)
_ADD_SPREADS: Final = _upsert("spreads", ("level", "slot", "kind", "what", "step"), ("count",))
