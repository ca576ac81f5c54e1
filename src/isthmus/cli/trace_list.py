"""Traces, one line each: for a list that is printed once, and for one that goes on.

80 columns hold when, which, whom and how it ended; wider terminals learn what it cost and what was changed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from isthmus.cli.layout import show_table
from isthmus.cli.terminal import FATES, WIDE, clean, lined_table, number, open_console, shorten
from isthmus.ports.traced import TraceSummary

_ROOMY: Final = 140
_SPACIOUS: Final = 180
"""From here on an id and a model, with its provider, have room beside each other."""
_OUTCOMES: Final = {
    "completed": FATES["supported"],
    "incomplete": FATES["degraded"],
    "cancelled": FATES["ignored"],
    "failed": FATES["rejected"],
    "refused": FATES["rejected"],
}


def show_traces(console: Console, traces: Sequence[TraceSummary]) -> None:
    """Newest first, as they were found."""
    table = trace_table(console.width)
    for trace in traces:
        table.add_row(*trace_row(trace, console.width))
    show_table(console, table, indent=0)


class TraceLines:
    """Lines of a list that goes on: columns keep the width that they begin with."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or open_console()
        self._begun = False

    def add(self, trace: TraceSummary) -> None:
        width = self._console.width
        table = trace_table(width)
        table.show_header = not self._begun
        table.add_row(*trace_row(trace, width))
        show_table(self._console, table, indent=0)
        self._console.file.flush()
        self._begun = True


def trace_table(width: int) -> Table:
    """Nothing is cut: where there is little room, the model stands below the id."""
    names = ["UTC", *(("request", "model") if width >= _SPACIOUS else ("request, model",)), "outcome"]
    names += ["in", "out", "cost"] if width >= WIDE else []
    names += ["cached", "first"] if width >= _ROOMY else []
    names += ["time", "changed"] if width >= WIDE else ["time"]
    table = lined_table(*names)
    table.padding = (0, 1, 0, 0)
    for column, name in zip(table.columns, names, strict=True):
        column.no_wrap, column.min_width = name != "model", _WIDTHS.get(name, 0)
        column.justify = "right" if name in _FIGURES else "left"
    return table


_WIDTHS: Final = {
    "UTC": 11,
    "request": 28,
    "request, model": 28,
    "model": 28,
    "outcome": 24,
    "in": 7,
    "out": 6,
    "cost": 8,
    "cached": 7,
    "first": 6,
    "time": 6,
    "changed": 7,
}
"""Lines that come one by one stand below each other all the same."""
_FIGURES: Final = ("in", "out", "cost", "cached", "first", "time")


def trace_row(trace: TraceSummary, width: int) -> list[RenderableType]:
    id, model = Text(clean(trace.id)), _model(trace)
    named = [id, model] if width >= _SPACIOUS else [Group(id, Text(model.plain, "dim"))]
    row: list[RenderableType] = [Text(when(trace.at), "dim"), *named, outcome(trace)]
    if width >= WIDE:
        row += [Text(_count(trace.input_tokens)), Text(_count(trace.output_tokens)), Text(money(trace.cost))]
    if width >= _ROOMY:
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


def when(at: float) -> str:
    """In a width that is always the same: to the second today, to the minute before."""
    moment, today = datetime.fromtimestamp(at, UTC), datetime.now(UTC).date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%m-%d %H:%M")


def seconds(value: float | None) -> str:
    """`840 ms`, `1.2 s`, `3 min`; nothing where nobody knows."""
    if value is None:
        return ""
    if value < 0.0005:
        return "<1 ms"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"


def money(value: float | None) -> str:
    """US dollars, with as many digits as it takes to see something."""
    if value is None:
        return ""
    if not value:
        return "$0"
    return f"${value:.2f}" if value >= 10 else f"${value:.4f}" if value >= 0.001 else f"${value:.2g}"


def _model(trace: TraceSummary) -> Text:
    whole = f"{trace.provider}/{trace.model}"
    return Text(clean((whole if trace.provider else trace.asked_model) or "-"))


def _count(value: int) -> str:
    return number(value) if value else ""
