"""Everything that the guard measures, each in processes of its own, and what it is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.speed import baseline
from bench.speed.baseline import Baseline, Expected, Figures
from bench.speed.fresh import run_fresh
from bench.speed.slower import Slower
from bench.speed.traced import LONG, SHORT, STREAMS

if TYPE_CHECKING:
    from bench.speed.doors import Plant


def expect(counts: Figures | None = None) -> Baseline:
    """What is recorded for this interpreter on this machine. `counts`, if there are any, are not taken again."""
    recorded, running = baseline.read(), baseline.version()
    if counts is None and running not in recorded:
        counts = measure_counts()
    return baseline.expect(recorded, counts["reference"] if counts else {}, running, baseline.processor())


def measure_counts(slower: Slower | None = None) -> Figures:
    counted: Figures = run_fresh("counting", given=slower)
    return counted


def measure_doors(plant: Plant | None = None) -> Figures:
    """Whole requests, door by door."""
    counted: Figures = run_fresh("doors", given=plant)
    return counted


def measure_traces(subject: str, plant: Plant | None = None) -> tuple[float, float]:
    """Instructions without traces, and what these add: of a request, or, of a stream, of each further delta."""
    names = [f"{subject}, {length} deltas" for length in (LONG, SHORT)] if subject in STREAMS else [subject]
    counted = run_fresh("tracing", given={"at": "", "turns": 0, **(plant or {}), "only": names})
    long, *short = (counted[name] for name in names)
    for few in short:
        long = {way: (long[way] - few[way]) / (LONG - SHORT) for way in few}
    return long["off"], long["added"]


def measure_imports() -> tuple[Figures, list[str]]:
    """The figures of each import, and in words what was loaded that must not be."""
    figures = run_fresh("importing")
    heavy = [
        f"{subject} loads `{name}`; import it where it is used"
        for subject, imported in figures.items()
        for name in imported.pop("heavy")
    ]
    return figures, heavy


def measure_cpu(expected: Expected | None = None, *, rounds: int | None = None) -> Figures:
    """With `expected`, whatever seems slower than allowed is looked at longer."""
    asked = {} if rounds is None else {"rounds": rounds}
    bounds = {}
    if expected is not None:
        bounds = {subject: figure["ratio"] * (1 + expected.limit) for subject, figure in expected.figures.items()}
    ratios = run_fresh("cpu_ratio", given={**asked, "bounds": bounds})
    return {subject: {"ratio": round(ratio, 4)} for subject, ratio in ratios.items()}
