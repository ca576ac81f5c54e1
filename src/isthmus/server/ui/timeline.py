"""How a request went, over time: what we did, what the upstream did, and how its words came.

In: a trace. Out: an SVG. One row for each thing that took time; below them how many batches of words had been told
by when, as a rising line, so that silence is a step to the right.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from isthmus.ports.traced import Trace
from isthmus.server.ui.words import seconds

WIDTH: Final = 960
_LEFT: Final = 130
_RIGHT: Final = 10
_ROW: Final = 22
_CURVE: Final = 90
_MOST_ROWS: Final = 40
_FEW: Final = 3
"""Moments below which a stream was no stream."""


class Span(NamedTuple):
    name: str
    kind: str
    begin: float
    end: float
    words: str = ""


def draw_timeline(trace: Trace) -> Markup:
    rows, whole = spans(trace), max(trace.timings.total, trace.timings.run or 0.0, 1e-6)
    whole = max([whole, *(row.end for row in rows)])
    shown = rows[:_MOST_ROWS]
    marks = trace.marks
    offset = _run_began(trace)
    high = len(shown) * _ROW + (_CURVE + 18 if len(marks) > 1 else 0) + 20
    scale = (WIDTH - _LEFT - _RIGHT) / whole
    parts: list[str] = []
    for number, row in enumerate(shown):
        y, x = float(number * _ROW), _LEFT + row.begin * scale
        wide = max((row.end - row.begin) * scale, 1.5)
        told = f"{row.name}: {seconds(row.end - row.begin)}{', ' + row.words if row.words else ''}"
        label = escape(seconds(row.end - row.begin))
        after = x + wide + 4 < WIDTH - 60
        inside = not after and wide > 70
        at, anchor = (x + wide + 4, "start") if after else (x + wide - 5, "end") if inside else (x - 4, "end")
        parts.append(
            f'<text class="p-text" x="{_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(row.name[:20])}</text>'
            f'<rect class="p-{row.kind}" x="{x:.1f}" y="{y + 4}" width="{wide:.1f}" height="{_ROW - 8}" rx="2">'
            f"<title>{escape(told)}</title></rect>"
            f'<text class="{f"p-inside on-{row.kind}" if inside else "p-text"}" x="{at:.1f}" y="{y + 15}" '
            f'text-anchor="{anchor}">{label}</text>'
        )
    if len(marks) > 1:
        top = len(shown) * _ROW + 8
        most = max(mark.batches for mark in marks) or 1
        points = [
            (_LEFT + (offset + mark.seconds) * scale, top + _CURVE - _CURVE * mark.batches / most) for mark in marks
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<text class="p-text" x="{_LEFT - 8}" y="{top + 14}" text-anchor="end">batches told</text>')
        parts.append(f'<text class="p-text" x="{_LEFT - 8}" y="{top + 28}" text-anchor="end">{most}</text>')
        parts.append(f'<polyline class="p-line p-out" points="{path}"/>')
        for (x, y), mark in zip(points, marks, strict=True):
            told = f"{seconds(offset + mark.seconds)}: {mark.batches} batches, {mark.event}"
            parts.append(
                f'<circle class="p-{_kind(mark.event)}" cx="{x:.1f}" cy="{y:.1f}" r="2.5">'
                f"<title>{escape(told)}</title></circle>"
            )
    for step in range(5):
        at = whole * step / 4
        x = _LEFT + at * scale
        anchor = "start" if step == 0 else "end" if step == 4 else "middle"
        parts.insert(0, f'<line class="p-grid" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{high - 16}"/>')
        parts.append(
            f'<text class="p-text" x="{x:.1f}" y="{high - 3}" text-anchor="{anchor}">{escape(seconds(at))}</text>'
        )
    return Markup(
        f'<svg class="plot timeline" viewBox="0 0 {WIDTH} {high}" role="img" aria-label="What took how long">'
        f"{''.join(parts)}</svg>"
    )


def _kind(event: str) -> str:
    """What was said there: a thought, a call, or words."""
    if "reasoning" in event:
        return "wait"
    return "tool" if "call" in event else "out"


def longest_silence(trace: Trace) -> tuple[float, float] | None:
    """How long nothing was told in the middle of a stream, and when that began; as far as its moments are known."""
    if len(trace.marks) < _FEW:
        return None
    began = _run_began(trace)
    gaps = [(after.seconds - before.seconds, began + before.seconds) for before, after in pairwise(trace.marks)]
    return max(gaps)


def spans(trace: Trace) -> list[Span]:
    """What took time, in its order."""
    timings, at = trace.timings, trace.timings.body
    found = [Span("request arrives", "grey", 0.0, at)] if at > 0 else []
    for name, took in (("read", timings.parse), ("planned", timings.plan)):
        if took is not None:
            found.append(Span(name, "ours", at, at + took))
            at += took
    end = timings.total or at
    for number, call in enumerate(trace.calls):
        last = number == len(trace.calls) - 1
        until = end - timings.settle if last else trace.calls[number + 1].at
        words = f"{call.model}, {call.why}"
        if call.error is not None:
            found.append(Span(call.provider, "bad", call.at, max(until, call.at), f"{words}: {call.error.code}"))
            continue
        heard = call.at + (call.first_byte or 0.0)
        if call.first_byte is not None:
            found.append(Span(f"{call.provider} thinks", "wait", call.at, heard, words))
        until = min([until, *(tool.at for tool in trace.tools if tool.at >= heard)])  # it had spoken by then
        found.append(Span(f"{call.provider} answers", "out", heard, max(until, heard), words))
    found += [
        Span(tool.title, "bad" if tool.failed else "tool", tool.at, tool.at + tool.seconds, tool.kind)
        for tool in trace.tools
    ]
    if timings.settle > 0:
        found.append(Span("checked, saved", "ours", max(end - timings.settle, 0.0), end))
    return found


def _run_began(trace: Trace) -> float:
    """Seconds after the request came."""
    timings = trace.timings
    return max(timings.total - timings.run, 0.0) if timings.run is not None else timings.body
