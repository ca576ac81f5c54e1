"""What a check found: figures with their limits, and the rows of a table where one figure says too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `limit` says what was promised; `kept` whether it holds."""

    what: str
    measured: str
    limit: str = ""
    kept: bool = True


@dataclass(slots=True)
class Report:
    """One check's outcome."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    head: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What went wrong, in words; the first ones are enough to start from."""

    def add(self, what: str, measured: object, limit: str = "", *, kept: bool = True) -> None:
        self.figures.append(Figure(what, str(measured), limit, kept))

    @property
    def broken(self) -> list[str]:
        """Every promise that was not kept, with its figure."""
        missed = [f"{each.what}: {each.measured} (limit: {each.limit})" for each in self.figures if not each.kept]
        return missed + self.problems[:10]


def show(report: Report) -> str:
    """The report as text: also valid Markdown, so that it can be pasted into a document."""
    lines = [f"### {report.title}", ""]
    if report.figures:
        body = [(each.what, each.measured, each.limit, "yes" if each.kept else "NO") for each in report.figures]
        lines += table(("figure", "measured", "limit", "kept"), body)
    if report.rows:
        lines += ["", *table(report.head, report.rows)]
    lines += [f"\nproblem: {problem}" for problem in report.problems[:10]]
    return "\n".join([*lines, ""])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)]


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def milliseconds(seconds: Sequence[float]) -> str:
    """A distribution in one cell."""
    shares = [percentile(seconds, share) * 1000 for share in (0.5, 0.95, 1.0)]
    return f"p50 {shares[0]:.1f}, p95 {shares[1]:.1f}, max {shares[2]:.1f} ms"
