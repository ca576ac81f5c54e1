"""`python -m bench.fuzz [--seconds 300] [--seed N] [--cases N]`: look for requests and answers that break a promise.

The exit code is 1 when one was found; `--seed` and the number of the case show it again.
"""

from __future__ import annotations

import argparse
import sys
import time

from bench.fuzz.engine import fuzz, tell
from bench.fuzz.house import running_house


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None, help="not given: the time, so that every run is another one")
    parser.add_argument("--cases", type=int, default=None)
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    with running_house() as house:
        outcome = fuzz(house, seed=seed, cases=arguments.cases, seconds=None if arguments.cases else arguments.seconds)
    print(tell(outcome))
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
