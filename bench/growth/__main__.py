"""`python -m bench.growth`: cost against size, with a fit and a verdict for each; the page is made anew from it."""

from __future__ import annotations

import argparse
import sys

import uvloop
from bench.gateways import page as whole_page
from bench.gateways.machine import Watch
from bench.gateways.progress import Progress
from bench.gateways.results import write
from bench.growth import core, page, served


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the largest sizes; less than 1 is not recorded")
    parser.add_argument("--core", action="store_true", help="the pure core alone; not recorded")
    parser.add_argument("--note", default="")
    given = parser.parse_args()
    watch = Watch()
    rows = core.rows(given.share)
    if not given.core:
        with Progress("growth", 24) as progress:
            rows += uvloop.run(served.rows(given.share, progress))
    grown = {"made": watch.told(given.note), "rows": rows}
    print("\n".join(page.told(grown)[0]))
    if given.share >= 1 and not given.core:
        write("growth", grown)
        whole_page.main()
    for words in (found := page.wrong(grown)):
        print(words)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
