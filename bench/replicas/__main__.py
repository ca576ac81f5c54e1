"""`python -m bench.replicas [--seconds N] [--store postgres|sqlite]`: replicas that come and go, with figures.

The exit code is 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from bench.replicas.check import check
from bench.robustness.report import show


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.replicas", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--store", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="which replica is killed when")
    arguments = parser.parse_args()
    found = asyncio.run(check(arguments.seconds, arguments.store, users=arguments.users, seed=arguments.seed))
    print(show(found))
    print("every promise kept" if not found.broken else f"{len(found.broken)} promise(s) broken")
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
