"""Where the time of a request goes, room by room: our gateway under the interpreter's profiler.

`python -m bench.gateways.profile NAME …` prints shares of the loop's time as JSON. The profiler makes calls dearer than
they are, so it tells where to look and no cost; client and upstream stand in the same loop and are left out.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import logging
import pstats
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from bench.gateways.machine import ROOT
from bench.gateways.workloads import named

CALLS: Final = 150
_ROOM: Final = re.compile(r"/isthmus/([a-z_]+)[/.]")
_LIBRARY: Final = re.compile(r".*/(?:site-packages|python3\.\d+)/([A-Za-z0-9_]+)")


def shares(names: list[str], seconds: float = 120.0) -> dict[str, dict[str, float]]:
    """Workload → room → share, from a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "bench.gateways.profile", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=True,
    )
    found: dict[str, dict[str, float]] = json.loads(ended.stdout)
    return found


def main() -> None:
    from bench.gateways.client import run
    from bench.gateways.subjects import DEFAULT
    from bench.speed.doors import running

    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as (loop, port, above, _):
        told = {}
        for name in sys.argv[1:]:
            workload = named(name)
            ask = DEFAULT.ask(workload, port, above)
            calls = CALLS if not workload.stream else CALLS // 10
            loop.run_until_complete(run(ask, 10, 1))
            profiler = cProfile.Profile()
            profiler.enable()
            seen = loop.run_until_complete(asyncio.wait_for(run(ask, calls, 1), 90))
            profiler.disable()
            assert not seen.wrong, seen.wrong
            told[name] = rooms(pstats.Stats(profiler))
    print(json.dumps(told))


def rooms(stats: pstats.Stats) -> dict[str, float]:
    """Time inside each function, by where it stands; what is built in belongs to whoever called it."""
    spent: Counter[str] = Counter()
    for (file, _, name), (_, _, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if file != "~":
            spent[room_of(file)] += own
            continue
        if "run_until_complete" in name:
            continue  # the loop itself, and its waiting
        for (caller, _, _), (_, _, share, _) in callers.items():
            spent[room_of(caller)] += share
    kept = {room: seconds for room, seconds in spent.items() if room != "bench"}
    whole = sum(kept.values())
    return {room: round(seconds / whole, 3) for room, seconds in sorted(kept.items(), key=lambda each: -each[1])[:12]}


def room_of(file: str) -> str:
    if "/bench/" in file:
        return "bench"
    if found := _ROOM.search(file):
        return found[1]
    found = _LIBRARY.match(file)
    return found[1] if found else "the loop"


if __name__ == "__main__":
    main()
