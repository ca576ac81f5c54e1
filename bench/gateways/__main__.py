"""`python -m bench.gateways`: CPU, first words, streams, memory and start of our gateway, beside floors and others.

`make bench` runs ours and the floors, `make bench-peers` everybody that could be installed. The figures go to
`bench/results/` as JSON, and `docs/benchmarks.md` is made from them. `--against <tree>/src` has the gateway of another
tree take turns with this one's; nothing is written then.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import uvloop
from bench.gateways import page
from bench.gateways.results import write
from bench.gateways.run import OWN, QUICK, WITH_PEERS, chosen, everything
from bench.gateways.subjects import ours
from bench.gateways.workloads import WORKLOADS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gateways", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="others too, as far as they are installed")
    parser.add_argument("--quick", action="store_true", help="half a minute: whether it works, no figures to keep")
    parser.add_argument("--only", nargs="*", default=[], metavar="SUBJECT", help="just these")
    parser.add_argument("--workloads", nargs="*", default=[], metavar="WORD", help="just those with one of these words")
    parser.add_argument("--against", type=Path, help="`src` of another tree, whose gateway takes turns with this one's")
    parser.add_argument("--note", default="", help="a sentence for the page, such as what else the machine did")
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else WITH_PEERS if arguments.peers else OWN
    subjects = chosen(arguments.peers, arguments.only)
    if arguments.against:
        subjects.append(
            ours("Isthmus, the other tree", "other", trace=True, store=True, source=arguments.against.resolve())
        )
    words = arguments.workloads
    workloads = [each for each in WORKLOADS if not words or any(word.lower() in each.name.lower() for word in words)]
    told = uvloop.run(everything(size, subjects, workloads, arguments.note))
    print("\n".join(page.tables(told)))
    if not (arguments.quick or arguments.against or words or arguments.only):
        write("peers" if arguments.peers else "own", told)
        page.main()
    sys.exit(0)


if __name__ == "__main__":
    main()
