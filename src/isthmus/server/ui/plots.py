"""Small plots as SVG, drawn here: no script has to run to see them. Colours are classes of the style sheet, so that
they are right in the dark, too; every bar and point says what it is in words (`<title>`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from isthmus.server.ui.words import count

WIDTH: Final = 720
HEIGHT: Final = 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 6, 8, 20


class Series(NamedTuple):
    name: str
    kind: str
    """A class of the style sheet: `ok`, `bad`, `in`, `out`, `cached`, `money`, `slow`."""
    values: Sequence[float | None]


def bars(
    labels: Sequence[str], series: Sequence[Series], show: Callable[[float], str] = count, title: str = ""
) -> Markup:
    """Stacked bars over time."""
    sums = [sum(each.values[index] or 0 for each in series) for index in range(len(labels))]
    top = nice(max(sums, default=0))
    wide = (WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    parts: list[str] = []
    for index, label in enumerate(labels):
        base = float(HEIGHT - _BOTTOM)
        told = ", ".join(f"{show(each.values[index] or 0)} {each.name}" for each in series)
        pieces = ""
        for each in series:
            high = _high(each.values[index] or 0, top)
            if high <= 0:
                continue
            base -= high
            pieces += (
                f'<rect class="p-{each.kind}" x="{_LEFT + index * wide + 0.5:.1f}" y="{base:.1f}" '
                f'width="{max(wide - 1, 0.6):.1f}" height="{high:.1f}"/>'
            )
        area = (
            f'<rect class="p-area" x="{_LEFT + index * wide:.1f}" y="{_TOP}" width="{wide:.1f}" '
            f'height="{HEIGHT - _TOP - _BOTTOM}"/>'
        )
        parts.append(f"<g>{area}{pieces}<title>{escape(label)}: {escape(told)}</title></g>")
    return _frame(parts, labels, top, show, title)


def lines(labels: Sequence[str], series: Sequence[Series], show: Callable[[float], str], title: str = "") -> Markup:
    """One line for each; where there is no value it is broken."""
    top = nice(max((value for each in series for value in each.values if value is not None), default=0))
    wide = (WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    parts: list[str] = []
    for each in series:
        runs: list[list[str]] = [[]]
        for index, value in enumerate(each.values):
            if value is None:
                runs.append([])
                continue
            x, y = _LEFT + (index + 0.5) * wide, HEIGHT - _BOTTOM - _high(value, top)
            runs[-1].append(f"{x:.1f},{y:.1f}")
            told = f"{labels[index]}: {each.name} {show(value)}"
            parts.append(
                f'<circle class="p-{each.kind}" cx="{x:.1f}" cy="{y:.1f}" r="2"><title>{escape(told)}</title></circle>'
            )
        parts += [f'<polyline class="p-line p-{each.kind}" points="{" ".join(run)}"/>' for run in runs if len(run) > 1]
    return _frame(parts, labels, top, show, title)


def nice(value: float) -> float:
    """The round number above it that an axis ends with."""
    if value <= 0:
        return 1.0
    unit: float = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in (1, 2, 2.5, 5, 10) if step * unit >= value)


def _high(value: float, top: float) -> float:
    return (HEIGHT - _TOP - _BOTTOM) * value / top


def _frame(parts: list[str], labels: Sequence[str], top: float, show: Callable[[float], str], title: str) -> Markup:
    lines = ""
    for level in (0.0, 0.5, 1.0):
        y = HEIGHT - _BOTTOM - _high(level * top, top)
        lines += f'<line class="p-grid" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        told = escape(show(level * top))
        lines += f'<text class="p-text" x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{told}</text>'
    wide = (WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    every = max(1, math.ceil(len(labels) / 6))
    for index in range(0, len(labels), every):
        x = _LEFT + (index + 0.5) * wide
        lines += (
            f'<text class="p-text" x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(labels[index])}</text>'
        )
    return Markup(
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{lines}{''.join(parts)}</svg>"
    )
