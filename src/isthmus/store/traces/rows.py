"""Traces as rows: how one is packed, which kind it is, and what it adds to the totals."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from isthmus.ports.traces import Trace, TraceSummary
from isthmus.store.traces.many import insert_many
from isthmus.store.traces.schema import SLOTS

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

FAILED: Final = ("failed", "refused")
TOTAL, FIRST_TOKEN = 0, 1
"""What a spread is of."""
MOST_KINDS: Final = 5_000
"""Models have whatever names clients send: beyond so many kinds, further ones lose the model's name."""
OTHER: Final = "(other)"
_PACKED: Final = 4_096
"""Bytes of a detail from which on it is worth compressing."""
_STEPS: Final = 4
"""Steps of a spread within one doubling."""

KIND: Final = ("owner", "key", "client", "door", "provider", "model", "outcome", "code", "changed")
Kind = tuple[str, str, str, str, str, str, str, str, bool]

encode: Final = msgspec.json.Encoder().encode
_decode_summary: Final = msgspec.json.Decoder(TraceSummary).decode
_decode_detail: Final = msgspec.json.Decoder(Trace).decode
_EMPTY: Final = TraceSummary(id="", at=0.0, ended_at=0.0)


def kind_of(summary: TraceSummary) -> Kind:
    return (
        summary.owner,
        summary.key,
        summary.client,
        summary.door,
        summary.provider,
        summary.model,
        summary.outcome,
        summary.code,
        bool(summary.degraded or summary.ignored),
    )


def pack(trace: Trace) -> tuple[bool, bytes]:
    """All but its summary."""
    data = encode(msgspec.structs.replace(trace, summary=_EMPTY))
    return (True, zlib.compress(data, 1)) if len(data) > _PACKED else (False, data)


def unpack(summary: TraceSummary, packed: bool, data: bytes) -> Trace:
    whole = _decode_detail(zlib.decompress(data) if packed else data)
    return msgspec.structs.replace(whole, summary=summary)


def read_summary(seq: int, data: bytes) -> TraceSummary:
    return msgspec.structs.replace(_decode_summary(data), seq=seq)


def read_at(tables: Tables, seq: int) -> TraceSummary | None:
    row = tables.execute("SELECT summary FROM traces WHERE seq = ?", (seq,)).fetchone()
    return None if row is None else read_summary(seq, row[0])


def step_of(seconds: float) -> int:
    return max(0, math.ceil(math.log2(seconds * 1000) * _STEPS)) if seconds > 0.001 else 0


def seconds_of(step: int) -> float:
    return float(2 ** (step / _STEPS) / 1000)


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


@dataclass(slots=True)
class Sums:
    """What a group of traces adds to the totals, by the smallest step: many of them make one row."""

    totals: dict[tuple[int, int], list[float]] = field(default_factory=dict)
    spreads: dict[tuple[int, int, int, int], int] = field(default_factory=dict)

    def add(self, kind: int, summary: TraceSummary) -> None:
        slot = int(summary.ended_at // SLOTS[0])
        added = (
            1,
            int(summary.outcome in FAILED),
            summary.input_tokens,
            summary.output_tokens,
            summary.cached_tokens,
            summary.cost or 0.0,
            int(summary.cost is None),
            summary.retries,
            summary.degraded,
            summary.ignored,
            summary.total,
        )
        sums = self.totals.get((slot, kind))
        self.totals[slot, kind] = list(added) if sums is None else [a + b for a, b in zip(sums, added, strict=True)]
        self._spread(slot, kind, TOTAL, summary.total)
        if summary.first_token is not None:
            self._spread(slot, kind, FIRST_TOKEN, summary.first_token)

    def _spread(self, slot: int, kind: int, what: int, seconds: float) -> None:
        place = (slot, kind, what, step_of(seconds))
        self.spreads[place] = self.spreads.get(place, 0) + 1

    def write(self, tables: Tables) -> None:
        totals: dict[tuple[int, ...], list[float]] = {}
        spreads: dict[tuple[int, ...], int] = {}
        for level, seconds in enumerate(SLOTS):
            many = seconds // SLOTS[0]
            for (slot, kind), added in self.totals.items():
                place = level, slot // many, kind
                sums = totals.get(place)
                totals[place] = added if sums is None else [a + b for a, b in zip(sums, added, strict=True)]
            for (slot, *rest), count in self.spreads.items():
                step = (level, slot // many, *rest)
                spreads[step] = spreads.get(step, 0) + count
        insert_many(tables, *_ADD_TOTALS, [(*place, *sums) for place, sums in totals.items()])
        insert_many(tables, *_ADD_SPREADS, [(*step, count) for step, count in spreads.items()])


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
