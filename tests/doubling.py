"""Whether work is in proportion to what comes: the same work on twice as much, compared in one process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

LINEAR = 3.0
"""Twice as much may cost up to three times as much; where work grows with the square it is four times."""


def growth(work: Callable[[int], object], size: int, *, rounds: int = 5) -> float:
    """The CPU time of twice the size over that of the size. The least of several rounds counts: other processes can
    only make one longer."""
    least = [float("inf"), float("inf")]
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for which in (0, 1):
                began = time.thread_time()
                work(size * (1 + which))
                least[which] = min(least[which], time.thread_time() - began)
            if least[1] / least[0] < LINEAR:
                break
    finally:
        if collecting:
            gc.enable()
    return least[1] / least[0]
