"""`python -m bench.fuzz [--seconds 300] [--seed N] [--cases N]`: look for requests and answers that break a promise.

The exit code is 1 when one was found; `--seed` and the number of the case show it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from bench.fuzz.engine import fuzz, tell
from bench.fuzz.house import TIGHT, running_house
from bench.fuzz.keyed import running_town, sweep
from bench.fuzz.keyed import tell as tell_swept

HOUSES: dict[str, dict[str, Any]] = {
    "limits as they are": {},
    "tight limits": {"limits": TIGHT},
    "with keys": {"key": "some-key", "operator": "operator-key"},
}
"""A quarter of the time each: what the limits let through, whether they are kept, and the same behind keys."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None, help="not given: the time, so that every run is another one")
    parser.add_argument("--cases", type=int, default=None)
    arguments = parser.parse_args()
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    found = 0
    seconds = None if arguments.cases else arguments.seconds / 4
    for name, settings in HOUSES.items():
        with running_house(**settings) as house:
            outcome = fuzz(house, seed=seed, cases=arguments.cases, seconds=seconds)
        print(f"{name}: {tell(outcome)}", flush=True)
        found += len(outcome.findings)
    with running_town() as town:
        swept = sweep(town, seed=seed, rounds=1 if arguments.cases else None, seconds=seconds)
    print(f"every route, by everybody: {tell_swept(swept)}", flush=True)
    return 1 if found or swept.findings else 0


if __name__ == "__main__":
    sys.exit(main())
