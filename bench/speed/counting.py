"""Work, counted exactly: bytecode instructions executed, and calls made, by each workload and by the reference loop.

Run in a process of its own (`fresh.py`). Each workload runs twice first, so that caches are warm. The interpreter
reports every instruction and every call of a Python or a C function: the same code gives the same numbers, however busy
the machine is. What happens *inside* a C function is not seen; `cpu_ratio.py` is there for that.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypedDict

from bench.speed.instructions import count_instructions
from bench.speed.reference import reference
from bench.speed.slower import Slower, slowed
from bench.workloads import workloads


class Counts(TypedDict):
    instructions: int
    calls: int


def main() -> None:
    """In: nothing, or how much slower each workload is to be made. Out: the counts of each, by name."""
    given: Slower | None = json.load(sys.stdin)
    counted = {"reference": count(reference)}
    for workload in workloads():
        counted[workload.name] = count(slowed(workload.run, given) if given else workload.run)
    print(json.dumps(counted))


def count(action: Callable[[], object]) -> Counts:
    action()
    action()
    return {"instructions": count_instructions(action), "calls": count_calls(action)}


def count_calls(action: Callable[[], object]) -> int:
    counted = 0

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal counted
        if event in ("call", "c_call"):
            counted += 1

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(before)
    return counted


if __name__ == "__main__":
    main()
