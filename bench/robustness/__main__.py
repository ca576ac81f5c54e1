"""`python -m bench.robustness [--quick] [NAME …]`: prove what the gateway promises about failures, with figures.

Every check starts the real server as a process of its own. The exit code is 1 when a promise is broken. The `storm`
runs only when it is named: it takes `--minutes N` and `--seed N`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from bench.robustness import (
    attack,
    background,
    backpressure,
    chain,
    crowd,
    disconnect,
    drain,
    edge,
    fuzz,
    kill,
    sockets,
    storm,
    two,
)
from bench.robustness.report import Report, show

Check = Callable[[], Coroutine[Any, Any, Report]]
CHECKS: dict[str, tuple[Check, Check]] = {
    "disconnect": (disconnect.check, lambda: disconnect.check(10)),
    "backpressure": (backpressure.check, lambda: backpressure.check(15, 30_000_000)),
    "sockets": (sockets.check, lambda: sockets.check(100, 20)),
    "edge": (edge.check, lambda: edge.check(4_000_000, 20, 100)),
    "crowd": (crowd.check, lambda: crowd.check(100)),
    "drain": (drain.check, lambda: drain.check(6)),
    "kill": (kill.check, lambda: kill.check(3)),
    "two": (two.check, lambda: two.check(3)),
    "background": (background.check, lambda: background.check(60)),
    "fuzz": (fuzz.check, lambda: fuzz.check(600, stride=20)),
    "attack": (attack.check, lambda: attack.check(small=True)),
    "chain": (chain.check, lambda: chain.check(60)),
}
"""Name → the whole check, and a quick form of it."""
STORM = "storm"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.robustness", description=(__doc__ or "").splitlines()[0])
    known = (*CHECKS, STORM)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(known)}; none: all but the storm")
    parser.add_argument("--quick", action="store_true", help="smaller counts")
    parser.add_argument("--minutes", type=float, default=None, help="how long the storm lasts (10)")
    parser.add_argument("--seed", type=int, default=None, help="which storm; not given: another one every time")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"there is no check `{unknown[0]}`; there are {', '.join(known)}")
    minutes = arguments.minutes or (0.5 if arguments.quick else 10.0)
    checks = {**CHECKS, STORM: (lambda: storm.check(minutes, arguments.seed),) * 2}
    broken = 0
    for name in arguments.names or CHECKS:
        started = time.monotonic()
        whole, quick = checks[name]
        report = asyncio.run(quick() if arguments.quick else whole())
        print(show(report))
        print(f"({name}: {time.monotonic() - started:.0f} s)\n", flush=True)
        broken += len(report.broken)
    print("every promise kept" if not broken else f"{broken} promise(s) broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
