"""A workload made slower on purpose, by a known share, in one of the ways in which code gets slower.

It shows that the guard can fail. The share is exact for what is counted; time inside C is as exact as the clock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Literal, TypedDict

from bench.speed.instructions import count_instructions
from bench.speed.reference import reference

Run = Callable[[], object]


class Slower(TypedDict):
    way: Literal["instructions", "calls", "time in C"]
    share: float
    """0.2: a fifth more."""


def slowed(run: Run, slower: Slower) -> Run:
    share = slower["share"]
    match slower["way"]:
        case "instructions":
            each = (count_instructions(lambda: _spin(1000)) - count_instructions(lambda: _spin(0))) / 1000
            run()
            more = round(share * count_instructions(run) / each)
            return lambda: (_spin(more), run())
        case "calls":
            from bench.speed.counting import count_calls

            run()
            more = round(share * count_calls(run))
            return lambda: (_call(more), run())
        case "time in C":
            turns = 1000
            for _ in range(3):  # beside what it slows down a turn may cost something else than by itself
                honest, slow = _least(run, lambda turns=turns: (_idle_in_c(turns), run()))
                turns = round(turns * share * honest / max(slow - honest, share * honest / 10))
            return lambda: (_idle_in_c(turns), run())


def _spin(times: int) -> None:
    for _ in range(times):
        pass


def _call(times: int) -> None:
    for _ in range(times):
        len("")


def _idle_in_c(turns: int) -> None:
    """Every turn costs the same, the first as the last: of `sum(range(…))` the first 256 numbers are cheaper."""
    deque(repeat(None, turns), maxlen=0)


def _least(*runs: Run, times: int = 200) -> list[float]:
    """CPU seconds of the quickest turn of each: the one that was least disturbed."""
    least = [float("inf")] * len(runs)
    for _ in range(times):
        for number, run in enumerate(runs):
            reference()  # as between the slices of the measure itself, so that the processor's caches are alike
            run()
            began = time.thread_time()
            run()
            least[number] = min(least[number], time.thread_time() - began)
    return least
