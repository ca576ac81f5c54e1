"""`python -m bench.speed`: what the guard for speed measures, beside the baseline; `--record` makes it the baseline.

The same runs in `tests/speed/` with every `make test`. What each measure sees: docs/reference/speed.md.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from bench.robustness.report import table
from bench.speed import baseline
from bench.speed.judge import Verdict, judge, red
from bench.speed.measure import expect, measure_counts, measure_cpu, measure_doors, measure_imports

_ROUNDS: Final = 150
_RUNS: Final = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="make these figures the baseline")
    if parser.parse_args().record:
        record()
    else:
        sys.exit(not check())


def check() -> bool:
    """Whether all is well, with every figure on the way."""
    counts = measure_counts()
    expected = expect(counts)
    imports, heavy = measure_imports()
    verdicts = [
        *judge(counts, expected.counts),
        *judge(measure_doors(), expected.doors),
        *judge(imports, expected.imports),
        *judge(measure_cpu(expected.cpu), expected.cpu),
    ]
    rows = [_row(verdict) for verdict in verdicts]
    print("\n".join(table(("subject", "measure", "baseline", "now", "change", "limit"), rows)), end="\n\n")
    told = [verdict.words for verdict in verdicts if verdict.state == "faster" and not verdict.red]
    wrong = [*red(verdicts), *heavy]
    print(*told, *wrong, "red" if wrong else "green", sep="\n")
    return not wrong


def record() -> None:
    """Counts as they are. CPU ratios differ a little with where a process lies in memory: the middle one of several."""
    recorded = baseline.read() if baseline.PATH.exists() else {}
    counts, doors, (imports, _) = measure_counts(), measure_doors(), measure_imports()
    runs = [measure_cpu(rounds=_ROUNDS) for _ in range(_RUNS)]
    cpu = {name: {"ratio": sorted(run[name]["ratio"] for run in runs)[_RUNS // 2]} for name in runs[0]}
    running, machine = baseline.version(), baseline.processor()
    made = {"counts": counts, "doors": doors, "imports": imports, "cpu": cpu}
    baseline.write(baseline.record(recorded, made, running, machine))
    print(f"recorded Python {running} on {machine} in {baseline.PATH.relative_to(baseline.ROOT)}")


def _row(verdict: Verdict) -> tuple[str, ...]:
    wanted, got = (f"{value:.10g}" if value is not None else "none" for value in (verdict.expected, verdict.measured))
    return verdict.subject, verdict.measure, wanted, got, f"{verdict.change:+.1%}", f"{verdict.limit:.0%}"


if __name__ == "__main__":
    main()
