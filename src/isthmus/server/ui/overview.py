"""Sums over time: how much was asked of whom, what it cost, how long it took, what failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from isthmus.ports.traces import TraceFilter, TraceTotal
from isthmus.server.ui.plots import Series, bars, lines
from isthmus.server.ui.words import count, money, seconds

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

RANGES: Final = {
    "1h": ("the last hour", 3600, 300),
    "24h": ("the last 24 hours", 86400, 1800),
    "7d": ("the last 7 days", 7 * 86400, 4 * 3600),
    "30d": ("the last 30 days", 30 * 86400, 86400),
}
"""In words, seconds, and seconds of one bar."""
KEEPS: Final = 10.0
"""Seconds for which sums are shown as they are."""
_MOST_MADE: Final = 64
_GROUPS: Final = ("provider", "model", "client", "key", "door", "code")
_MOST: Final = 12
_EMPTY: Final = TraceTotal()


class Remembered:
    """Sums that were made a moment ago: a page that many people look at is not counted anew for each of them."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._made: dict[tuple[str | None, str], tuple[float, dict[str, Any]]] = {}

    def find(self, owner: str | None, chosen: str) -> dict[str, Any] | None:
        at, values = self._made.get((owner, chosen), (0.0, {}))
        return values if values and self._now() - at < KEEPS else None

    def keep(self, owner: str | None, chosen: str, values: dict[str, Any]) -> None:
        while len(self._made) >= _MOST_MADE:
            del self._made[next(iter(self._made))]
        self._made[owner, chosen] = (self._now(), values)


async def overview_view(look: Look) -> dict[str, Any]:
    chosen = look.asked.get("range", "24h")
    chosen = chosen if chosen in RANGES else "24h"
    values: dict[str, Any] = {"ranges": RANGES, "chosen": chosen, "whole": _EMPTY, "plots_shown": (), "groups": {}}
    if look.traces is None:
        return values
    known = look.pages.sums.find(look.visitor.owner, chosen)
    if known is not None:
        return known
    _, wide, step = RANGES[chosen]
    now = time.time()
    since = (now - wide) // step * step
    wanted, owner = TraceFilter(since=since), look.visitor.owner
    whole = next(iter(await look.traces.totals(owner, wanted)), _EMPTY)
    over_time = await look.traces.totals(owner, wanted, by="time", step=step)
    groups = {by: (await look.traces.totals(owner, wanted, by=by, most=_MOST)) for by in _GROUPS}
    values |= {
        "whole": whole,
        "plots_shown": draw(over_time, since, now, step) if whole.requests else (),
        "groups": {by: rows for by, rows in groups.items() if any(row.group for row in rows)},
    }
    if whole.requests:
        look.pages.sums.keep(owner, chosen, values)
    return values


def draw(totals: Sequence[TraceTotal], since: float, now: float, step: int) -> list[tuple[str, Any, list[Series]]]:
    """Name, picture and legend of each."""
    known = {int(float(each.group)): each for each in totals}
    starts = range(int(since), int(now) + 1, step)
    rows = [known.get(start, _EMPTY) for start in starts]
    labels = [_label(start, step) for start in starts]
    asked = [
        Series("answered", "ok", [row.requests - row.failed for row in rows]),
        Series("failed", "bad", [row.failed for row in rows]),
    ]
    tokens = [
        Series("input", "in", [row.input_tokens - row.cached_tokens for row in rows]),
        Series("cached", "cached", [row.cached_tokens for row in rows]),
        Series("output", "out", [row.output_tokens for row in rows]),
    ]
    spent = [Series("spent", "money", [row.cost for row in rows])]
    first = [
        Series("half within", "ok", [row.first_token.percentile(0.5) for row in rows]),
        Series("95 % within", "slow", [row.first_token.percentile(0.95) for row in rows]),
    ]
    took = [
        Series("half within", "ok", [row.total.percentile(0.5) for row in rows]),
        Series("95 % within", "slow", [row.total.percentile(0.95) for row in rows]),
    ]
    changed = [
        Series("degraded", "money", [row.degraded for row in rows]),
        Series("ignored", "wait", [row.ignored for row in rows]),
    ]
    shown = [
        ("Requests", bars(labels, asked, count, "Requests over time"), asked),
        ("Tokens", bars(labels, tokens, count, "Tokens over time"), tokens),
        ("Time to the first token", lines(labels, first, seconds, "Time to the first token"), first),
        ("Time to the end", lines(labels, took, seconds, "Time to the end"), took),
    ]
    if any(row.cost for row in rows):
        shown.append(("Cost", bars(labels, spent, money, "Cost over time"), spent))
    if any(row.degraded or row.ignored for row in rows):
        shown.append(("What was changed", bars(labels, changed, count, "Decisions that changed a request"), changed))
    return shown


def _label(start: int, step: int) -> str:
    return datetime.fromtimestamp(start, UTC).strftime("%d %b" if step >= 14_400 else "%H:%M")
