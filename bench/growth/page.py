"""The part of `docs/benchmarks.md` about growth: a table with the fit of each row, and a picture of each kind."""

from __future__ import annotations

from typing import Any, Final

from bench.gateways.plot import lines, number_of
from bench.growth.fit import fit
from bench.robustness.report import table

Json = dict[str, Any]
EARLY: Final = 4.0
"""Times what reading its JSON takes that a refusal may take."""
_LEAST: Final = 2
"""Points, to say how something grows."""
_UNMEASURED: Final = "not measured: the machine carried less than the second size"


def told(grown: Json) -> tuple[list[str], dict[str, str]]:
    """The text, and pictures by their names."""
    rows, pictures = [], {}
    for row in grown["rows"]:
        points = [tuple(point) for point in row["points"]]
        if len(points) < _LEAST:
            rows.append((row["name"], *[""] * 5, f"**{_UNMEASURED}**"))
            continue
        fitted = fit(points)
        counted = fit([tuple(point) for point in row["instructions"]]) if row.get("instructions") else None
        first, last = points[0], points[-1]
        rows.append(
            (
                row["name"],
                f"{number_of(first[0])} → {number_of(last[0])} {row['unit']}",
                f"{number_of(first[1])} → {number_of(last[1])}",
                number_of(max(fitted.each, 0)),
                f"{fitted.exponent:g}",
                f"{counted.exponent:g}" if counted else "",
                late(row) or (counted or fitted).verdict,
            )
        )
    head = ("what grows", "from → to", "CPU µs", "one more, µs", "exponent", "of instructions", "")
    lines_of = table(head, rows)
    lines_of[1] = "|---|---|--:|--:|--:|--:|---|"
    groups = {
        "bench-growth-core.svg": [row for row in grown["rows"] if row.get("instructions")],
        "bench-growth-served.svg": [row for row in grown["rows"] if not row.get("instructions")],
    }
    titles = {"bench-growth-core.svg": "The pure core", "bench-growth-served.svg": "A gateway that serves"}
    text = [
        "The exponent is the slope of cost against size, both as logarithms, over the larger half of the sizes: 1 is",
        "in proportion. Instructions are exact and decide where they are counted.",
        "",
        *lines_of,
    ]
    for name, group in groups.items():
        if group:
            series = {row["name"]: [tuple(point) for point in row["points"]] for row in group if row["points"]}
            pictures[name] = lines(f"{titles[name]}: cost against size", "size", "CPU µs", series)
            text += ["", f"![{titles[name]}: cost against size](images/{name})"]
    return text, pictures


def late(row: Json) -> str:
    """Nothing, or how much of a refused request was done in vain."""
    if "read" not in row:
        return ""
    times = max(cost / read for (_, cost), (_, read) in zip(row["points"], row["read"], strict=True))
    return f"**late: {times:.0f} times what reading its JSON takes**" if times > EARLY else ""


def wrong(grown: Json) -> list[str]:
    """Rows that grow faster than their size, or are refused late."""
    found = []
    for row in grown["rows"]:
        if len(row["points"]) < _LEAST:
            found.append(f"{row['name']}: {_UNMEASURED}")
            continue
        fitted = fit([tuple(point) for point in row.get("instructions") or row["points"]])
        if not fitted.good:
            found.append(f"{row['name']} grows faster than its size: exponent {fitted.exponent:g}")
        if words := late(row):
            found.append(f"{row['name']}: {words}")
    return found
