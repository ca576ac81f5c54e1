"""The recorded figures, and what to expect of them on the interpreter and the processor that run now.

One entry for each minor version of Python, because each compiles to other instructions. A version without an entry is
held to that of the nearest version, scaled by what the reference loop takes on both, with a wider limit: the guard
never passes for want of a number. CPU ratios belong to a kind of processor, and have a wider limit on another one.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.speed.fresh import ROOT

PATH: Final = ROOT / "tests" / "speed" / "baseline.json"

LIMIT: Final = 0.15
"""A measure that is worse by more than this is red."""
SCALED_LIMIT: Final = 0.30
"""For counts on a version of Python that has no entry. Scaled from 3.11 to 3.13 they were off by up to 11 %."""
ELSEWHERE_LIMIT: Final = 0.50
"""For CPU ratios on a processor, or a version of Python, for which none were recorded. On 3.13 they are higher than on
3.11 by up to 39 %."""

Figures = dict[str, dict[str, float]]
"""Subject → measure → value."""


@dataclass(frozen=True, slots=True)
class Expected:
    figures: Figures
    limit: float
    keeps_gains: bool = False
    """Whether a figure that is better by more than the limit has to be recorded."""


@dataclass(frozen=True, slots=True)
class Baseline:
    counts: Expected
    doors: Expected
    imports: Expected
    cpu: Expected


def version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def processor() -> str:
    """The kind of processor, in the words of the kernel where there are any."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{platform.machine()} {names[0] if names else platform.processor()}".strip()


def read(path: Path = PATH) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(path.read_text())
    return recorded


def expect(recorded: Mapping[str, Any], reference: Mapping[str, float], running: str, machine: str) -> Baseline:
    """What to hold a run to. Only a version without an entry needs `reference`: the counts of the reference loop."""
    if running in recorded:
        entry, scale, limit = recorded[running], 1.0, LIMIT
    else:
        entry = recorded[min(recorded, key=lambda each: abs(_minor(each) - _minor(running)))]
        scale, limit = reference["instructions"] / entry["counts"]["reference"]["instructions"], SCALED_LIMIT
    same = running in recorded and entry["processor"] == machine
    return Baseline(
        Expected(_scaled(entry["counts"], scale), limit, keeps_gains=running in recorded),
        _expect_doors(recorded, entry, scale, limit, keeps_gains=running in recorded),
        Expected(_scaled(entry["imports"], scale), limit, keeps_gains=running in recorded),
        Expected(entry["cpu"], LIMIT if same else ELSEWHERE_LIMIT),
    )


def _expect_doors(
    recorded: Mapping[str, Any], entry: Mapping[str, Any], scale: float, limit: float, *, keeps_gains: bool
) -> Expected:
    """A version for which no doors were counted yet is held to those of another one, as one without an entry is."""
    if "doors" in entry:
        return Expected(_scaled(entry["doors"], scale), limit, keeps_gains=keeps_gains)
    other = next(each for each in recorded.values() if "doors" in each)
    scale *= entry["counts"]["reference"]["instructions"] / other["counts"]["reference"]["instructions"]
    return Expected(_scaled(other["doors"], scale), SCALED_LIMIT)


def record(recorded: Mapping[str, Any], made: Mapping[str, Figures], running: str, machine: str) -> dict[str, Any]:
    """The baseline with these figures in it, by their kinds: counts, doors, imports, cpu.

    Entries of other versions are moved in proportion: what made this version do a tenth less did so in all of them.
    """
    before = recorded.get(running)
    entries: dict[str, Any] = {}
    for name, entry in recorded.items():
        moved = (
            {kind: _moved(entry[kind], before[kind], made[kind]) for kind in made if kind in entry} if before else {}
        )
        entries[name] = {**entry, **moved}
    entries[running] = {"processor": machine, **made}
    return dict(sorted(entries.items(), key=lambda each: _minor(each[0])))


def write(recorded: Mapping[str, Any], path: Path = PATH) -> None:
    path.write_text(json.dumps(recorded, indent=2) + "\n")


def _scaled(figures: Figures, scale: float) -> Figures:
    """Instructions differ between versions; how often something is called, or which modules are loaded, hardly does."""
    return {
        subject: {measure: value * scale if measure == "instructions" else value for measure, value in measured.items()}
        for subject, measured in figures.items()
    }


def _moved(old: Figures, before: Figures, after: Figures) -> Figures:
    """`old`, with every subject that is measured now, each changed as `before` changed to `after`."""
    moved: Figures = {}
    for subject, measured in after.items():
        if subject not in old or subject not in before:
            continue
        moved[subject] = {
            measure: _rounded(old[subject][measure] * value / before[subject][measure])
            for measure, value in measured.items()
            if measure in old[subject] and measure in before[subject]
        }
    return moved


def _rounded(value: float) -> float:
    return round(value) if value > 100 else round(value, 4)


def _minor(name: str) -> int:
    return int(name.partition(".")[2])
