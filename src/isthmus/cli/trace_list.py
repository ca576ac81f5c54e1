"""Traces, one line each: for a list that is printed once, and for one that goes on.

80 columns hold when, which, whom and how it ended; wider terminals learn what it cost and what was changed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli.terminal import FATES, WIDE, clean, lined_table, number, shorten
from isthmus.ports.traces import TraceSummary

_SPACIOUS: Final = 140
_OUTCOMES: Final = {
    "completed": FATES["supported"],
    "incomplete": FATES["degraded"],
    "cancelled": FATES["ignored"],
    "failed": FATES["rejected"],
    "refused": FATES["rejected"],
}
_DAY: Final = 86_400


def show_traces(console: Console, traces: Sequence[TraceSummary]) -> None:
    """Newest first, as they were found."""
    table = trace_table(console.width)
    days = {int(trace.at // _DAY) for trace in traces}
    for trace in traces:
        table.add_row(*trace_row(trace, console.width, dated=len(days) > 1))
    console.print(table)


def trace_table(width: int) -> Table:
    names = ["when (UTC)", "request", "model", "outcome"]
    names += ["in", "out", "cost"] if width >= WIDE else []
    names += ["cached", "first"] if width >= _SPACIOUS else []
    names += ["time", "changed"] if width >= WIDE else ["time"]
    table = lined_table(*names)
    for column in table.columns:
        column.no_wrap = True
        column.justify = "right" if str(column.header) in _FIGURES else "left"
    table.columns[1].min_width = 28
    table.columns[2].overflow = "ellipsis"
    return table


_FIGURES: Final = ("in", "out", "cost", "cached", "first", "time")


def trace_row(trace: TraceSummary, width: int, *, dated: bool = False) -> list[Text]:
    row = [Text(when(trace.at, dated=dated), "dim"), Text(clean(trace.id)), _model(trace, width), outcome(trace)]
    if width >= WIDE:
        row += [Text(_count(trace.input_tokens)), Text(_count(trace.output_tokens)), Text(money(trace.cost))]
    if width >= _SPACIOUS:
        row += [Text(_count(trace.cached_tokens)), Text(seconds(trace.first_token))]
    row.append(Text(seconds(trace.total)))
    if width >= WIDE:
        row.append(changed(trace))
    return row


def outcome(trace: TraceSummary) -> Text:
    """How it ended; where it did not go well, why."""
    word = trace.code if trace.outcome in ("failed", "refused") and trace.code else trace.outcome
    sign, style = _OUTCOMES.get(trace.outcome, ("·", "dim"))
    return Text(f"{sign} {shorten(word or 'unknown', 28)}", style)


def changed(trace: TraceSummary) -> Text:
    """`~2 –1`: so many fields, tools or items were degraded or ignored."""
    counted = (("degraded", trace.degraded), ("ignored", trace.ignored))
    marks = [Text(f"{FATES[action][0]}{count}", FATES[action][1]) for action, count in counted if count]  # type: ignore[index]
    return Text(" ").join(marks)


def when(at: float, *, dated: bool = False) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M:%S" if dated else "%H:%M:%S")


def seconds(value: float | None) -> str:
    """`840 ms`, `1.2 s`, `3 min`; nothing where nobody knows."""
    if value is None:
        return ""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"


def money(value: float | None) -> str:
    """US dollars, with as many digits as it takes to see something."""
    if value is None:
        return ""
    return f"${value:.2f}" if value >= 10 else f"${value:.4f}" if value >= 0.01 or not value else f"${value:.2g}"


def _model(trace: TraceSummary, width: int) -> Text:
    name = f"{trace.provider}/{trace.model}" if trace.provider else trace.asked_model
    return Text(shorten(name or "-", 18 if width < WIDE else 34))


def _count(value: int) -> str:
    return number(value) if value else ""
