"""`python -m bench.robustness [--quick] [NAME …]`: prove what the gateway promises about failures, with figures.

Every check starts the real server as a process of its own. The exit code is 1 when a promise is broken.
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.robustness", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(CHECKS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="smaller counts")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in CHECKS]:
        parser.error(f"there is no check `{unknown[0]}`; there are {', '.join(CHECKS)}")
    broken = 0
    for name in arguments.names or CHECKS:
        started = time.monotonic()
        whole, quick = CHECKS[name]
        report = asyncio.run(quick() if arguments.quick else whole())
        print(show(report))
        print(f"({name}: {time.monotonic() - started:.0f} s)\n", flush=True)
        broken += len(report.broken)
    print("every promise kept" if not broken else f"{broken} promise(s) broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
