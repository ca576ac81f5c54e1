"""A workload made slower on purpose, by a known share, in one of the ways in which code gets slower.

It shows that the guard can fail. The share is exact for what is counted; time inside C is as exact as the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypedDict

from bench.speed.instructions import count_instructions

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
            size = 2000
            more = round(size * share * _least(run) / _least(lambda: sum(range(size))))
            return lambda: (sum(range(more)), run())


def _spin(times: int) -> None:
    for _ in range(times):
        pass


def _call(times: int) -> None:
    for _ in range(times):
        len("")


def _least(run: Run, times: int = 100) -> float:
    """CPU seconds of the quickest run: the one that was least disturbed."""
    least = float("inf")
    for _ in range(times):
        run()  # what others left in the processor's caches is gone after this one
        began = time.thread_time()
        run()
        least = min(least, time.thread_time() - began)
    return least
