"""`python -m bench.fuzz [--seconds 300] [--seed N] [--cases N]`: look for requests and answers that break a promise.

The exit code is 1 when one was found; `--seed` and the number of the case show it again.
"""

from __future__ import annotations

import argparse
import sys
import time

from bench.fuzz.engine import fuzz, tell
from bench.fuzz.house import TIGHT, running_house


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None, help="not given: the time, so that every run is another one")
    parser.add_argument("--cases", type=int, default=None)
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    found = 0
    for limits in (None, TIGHT):  # half of it each: what the limits let through, and whether they are kept
        with running_house(limits=limits) as house:
            seconds = None if arguments.cases else arguments.seconds / 2
            outcome = fuzz(house, seed=seed, cases=arguments.cases, seconds=seconds)
        print(f"{'tight limits' if limits else 'limits as they are'}: {tell(outcome)}", flush=True)
        found += len(outcome.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
