"""Looks at a process over time, and whether it grew.

In: samples, taken while the load was the same all the time. Out: a report. Memory is judged by the middle slope of
all pairs of samples, which a few odd ones do not move; what is counted (files, tasks, threads, processes) by the
middle of the first and of the last looks. The first third of a soak is for warming up.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from bench.robustness.report import Report

COUNTED: Final = ("files", "tasks", "threads", "children")
SPARE: Final = 12
"""So many more files, tasks or threads may be seen at the end: clients who happen to be there, a late thread."""
_LEAST: Final = 6
_MOST: Final = 120
"""Samples whose pairs are looked at."""


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    memory: int
    files: int
    tasks: int
    threads: int
    children: int


@dataclass(frozen=True, slots=True)
class Limits:
    memory: float
    """Bytes that the trend may add over the time that is judged."""
    spare: int = SPARE


def judge(report: Report, samples: Sequence[Sample], limits: Limits) -> None:
    kept = samples[len(samples) // 3 :]
    enough = len(kept) >= _LEAST
    report.add("samples that are judged", len(kept), f"≥ {_LEAST}", kept=enough)
    if not enough:
        return
    grown = slope(kept) * (kept[-1].at - kept[0].at)
    minutes = (kept[-1].at - kept[0].at) / 60
    words = (
        f"{kept[0].memory / 1e6:.1f} → {kept[-1].memory / 1e6:.1f} MB, trend {grown / 1e6:+.1f} MB in {minutes:.1f} min"
    )
    report.add("memory", words, f"trend ≤ {limits.memory / 1e6:.0f} MB", kept=grown <= limits.memory)
    for name in COUNTED:
        values = [getattr(sample, name) for sample in kept]
        part = max(1, len(values) // 5)
        first, last = statistics.median(values[:part]), statistics.median(values[-part:])
        report.add(name, f"{first:g} → {last:g}", f"+ {limits.spare}", kept=last <= first + limits.spare)


def found(samples: Sequence[Sample], limits: Limits) -> bool:
    """Whether something grows by what is known so far."""
    report = Report("so far")
    judge(report, samples, limits)
    return any(not each.kept for each in report.figures[1:])


def slope(samples: Sequence[Sample]) -> float:
    """Bytes a second."""
    step = max(1, len(samples) // _MOST)
    few = samples[::step]
    return statistics.median(
        (two.memory - one.memory) / (two.at - one.at) for one, two in combinations(few, 2) if two.at > one.at
    )
