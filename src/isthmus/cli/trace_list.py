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

from isthmus.cli.terminal import FATES, WIDE, clean, lined_table, number, open_console, shorten
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


class TraceLines:
    """Lines of a list that goes on: columns keep the width that they begin with."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or open_console()
        self._begun = False

    def add(self, trace: TraceSummary) -> None:
        width = self._console.width
        table = trace_table(width, fixed=True)
        table.show_header = not self._begun
        table.add_row(*trace_row(trace, width))
        self._console.print(table)
        self._console.file.flush()
        self._begun = True


def trace_table(width: int, *, fixed: bool = False) -> Table:
    names = ["when (UTC)", "request", "model", "outcome"]
    names += ["in", "out", "cost"] if width >= WIDE else []
    names += ["cached", "first"] if width >= _SPACIOUS else []
    names += ["time", "changed"] if width >= WIDE else ["time"]
    table = lined_table(*names)
    for column in table.columns:
        column.no_wrap = True
        column.justify = "right" if str(column.header) in _FIGURES else "left"
        if fixed:
            column.width = _WIDTHS[str(column.header)] if width >= WIDE else _NARROW[str(column.header)]
    table.columns[1].min_width = 28
    table.columns[2].overflow = table.columns[3].overflow = "ellipsis"
    return table


_FIGURES: Final = ("in", "out", "cost", "cached", "first", "time")
_NARROW: Final = {"when (UTC)": 10, "request": 28, "model": 15, "outcome": 12, "time": 7}
_WIDTHS: Final = _NARROW | {
    "model": 26,
    "outcome": 14,
    "changed": 7,
    "in": 8,
    "out": 6,
    "cost": 8,
    "cached": 8,
    "first": 7,
}


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
