"""CPU time of each workload as a multiple of the reference loop's, in the same process: it sees what happens inside C.

Run in a process of its own (`fresh.py`). Workload and reference take turns in short slices, each right behind an
unmeasured run of itself that fills the processor's caches, and the least of all slices counts: other processes can
only make a slice longer. Garbage collection is off meanwhile. Whatever is above its bound after the first rounds is
sampled further: on a busy machine it may not have had one quiet slice yet; code that really got slower never has one.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, TypedDict

from bench.speed.reference import reference
from bench.speed.slower import Slower, slowed
from bench.workloads import short_workloads

FIRST_ROUNDS: Final = 150
MOST_ROUNDS: Final = 2000
MOST_SECONDS: Final = 6.0
"""CPU seconds after which no more is sampled."""

Run = Callable[[], object]
Clock = Callable[[], float]


class Asked(TypedDict, total=False):
    bounds: Mapping[str, float]
    """The ratio from which on a workload is worth more samples; by default everything gets the first rounds."""
    rounds: int
    slower: list[Slower]
    """Measure slower variants beside the workloads named in `only`; variant N is called `name +N`."""
    only: list[str]


def main() -> None:
    asked: Asked = json.load(sys.stdin) or {}
    only = asked.get("only")
    runs: dict[str, Run] = {each.name: each.run for each in short_workloads() if only is None or each.name in only}
    gc.collect()
    gc.freeze()
    gc.disable()
    for name, run in list(runs.items()):
        runs |= {f"{name} +{number}": slowed(run, slower) for number, slower in enumerate(asked.get("slower", []))}
    print(json.dumps(measure(runs, asked.get("bounds", {}), first=asked.get("rounds", FIRST_ROUNDS))))


def measure(
    runs: Mapping[str, Run],
    bounds: Mapping[str, float],
    *,
    reference: Run = reference,
    first: int = FIRST_ROUNDS,
    clock: Clock = time.thread_time,
) -> dict[str, float]:
    """The ratio of each run to the reference."""
    least = dict.fromkeys(runs, float("inf"))
    least_reference = float("inf")
    began = clock()
    sampled = list(runs)
    for number in range(max(first, MOST_ROUNDS)):
        if number >= first:
            sampled = [name for name in runs if least[name] / least_reference > bounds.get(name, float("inf"))]
            if not sampled or clock() - began > MOST_SECONDS:
                break
        for name in sampled:
            least_reference = min(least_reference, _slice(reference, clock))
            least[name] = min(least[name], _slice(runs[name], clock))
    return {name: seconds / least_reference for name, seconds in least.items()}


def _slice(run: Run, clock: Clock) -> float:
    run()
    began = clock()
    run()
    return clock() - began


if __name__ == "__main__":
    main()
