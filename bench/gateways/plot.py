"""Pictures of figures: bars and lines as SVG, by hand, for a page that is light or dark.

Text and lines take the reader's colour by a media query inside the picture; the colours of the marks are readable on
both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

COLOURS: Final = ("#2f7ed8", "#e07b1a", "#3a9d5d", "#b0529c", "#8a8f98", "#c9453b", "#14938f", "#8c6d1f")
_STYLE: Final = (
    "<style>text{font:12px system-ui,sans-serif;fill:#24292f}.t{font-weight:600;font-size:13px}.a{stroke:#8b949e;"
    "stroke-width:1}.g{stroke:#8b949e;stroke-opacity:.25}.m{fill:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9aa4af}}</style>"
)


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float | None
    words: str = ""
    """In place of a value."""
    colour: int = 4


def bars(title: str, unit: str, given: Sequence[Bar], mark: float | None = None) -> str:
    """One bar below the other, on a logarithmic scale where they differ by more than thirty times; `mark`: a bound."""
    values = [bar.value for bar in given if bar.value]
    top = max([*values, mark or 0, 1e-9])
    low = min([*values, top])
    wide = top / max(low, 1e-9) > 30
    left, width, row = 210, 400, 24

    def along(value: float) -> float:
        if wide:
            floor = low / 2
            return width * math.log(max(value, floor) / floor) / math.log(top / floor)
        return width * value / top

    height = 40 + row * len(given) + (20 if mark is not None else 8)
    lines = [_open(720, height, title), f'<text class="t" x="8" y="20">{escape(title)}</text>']
    scale = f"{unit}, logarithmic scale" if wide else unit
    lines.append(f'<text class="m" x="712" y="20" text-anchor="end">{escape(scale)}</text>')
    for number, bar in enumerate(given):
        y = 34 + row * number
        lines.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(bar.name)}</text>')
        if bar.value is None:
            lines.append(f'<text class="m" x="{left}" y="{y + 15}">{escape(bar.words)}</text>')
            continue
        length = max(along(bar.value), 1)
        colour = COLOURS[bar.colour % len(COLOURS)]
        lines.append(f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="{row - 7}" rx="2" fill="{colour}"/>')
        lines.append(
            f'<text x="{left + length + 6:.1f}" y="{y + 15}">{escape(bar.words or number_of(bar.value))}</text>'
        )
    if mark is not None:
        x = left + along(mark)
        lines.append(f'<line class="a" stroke-dasharray="4 3" x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{height - 16}"/>')
        lines.append(_word(f"budget {number_of(mark)}", x, height - 4, "middle"))
    return "\n".join([*lines, "</svg>\n"])


def lines(title: str, across: str, up: str, given: dict[str, Sequence[tuple[float, float]]]) -> str:
    """Cost against size, both on logarithmic scales: what grows in proportion has a slope of one."""
    points = [point for series in given.values() for point in series if point[0] > 0 and point[1] > 0]
    if not points:
        return bars(title, up, [])
    left, top, width, height = 70, 36, 600, 260
    xs, ys = [math.log10(x) for x, _ in points], [math.log10(y) for _, y in points]
    x0, x1, y0, y1 = math.floor(min(xs)), math.ceil(max(xs)), math.floor(min(ys)), math.ceil(max(ys))
    x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            left + width * (math.log10(x) - x0) / (x1 - x0),
            top + height - height * (math.log10(y) - y0) / (y1 - y0),
        )

    drawn = [_open(720, top + height + 50 + 18 * ((len(given) - 1) // 2), title)]
    drawn.append(f'<text class="t" x="8" y="20">{escape(title)}</text>')
    for power in range(x0, x1 + 1):
        x, y = place(10.0**power, 10.0**y0)
        drawn.append(f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}"/>')
        drawn.append(_word(number_of(10.0**power), x, y + 16, "middle"))
    for power in range(y0, y1 + 1):
        x, y = place(10.0**x0, 10.0**power)
        drawn.append(f'<line class="g" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(_word(number_of(10.0**power), x - 6, y + 4, "end"))
    drawn.append(_word(f"{up} against {across}", 712, 20, "end"))
    for number, (name, series) in enumerate(given.items()):
        colour = COLOURS[number % len(COLOURS)]
        spots = [place(x, y) for x, y in series if x > 0 and y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots]
        at, down = left + 320 * (number % 2), top + height + 38 + 18 * (number // 2)
        drawn.append(f'<rect x="{at}" y="{down - 9}" width="10" height="10" rx="2" fill="{colour}"/>')
        drawn.append(f'<text x="{at + 15}" y="{down}">{escape(name)}</text>')
    return "\n".join([*drawn, "</svg>\n"])


def _word(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text class="m" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def number_of(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1e6:g} M"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _open(width: int, height: float, title: str) -> str:
    size = f'width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">{_STYLE}'
