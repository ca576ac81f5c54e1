"""CPU figures of the pure core: planning a request, and one streamed delta.

Run: `make bench-core`. Times are CPU time on whatever machine this is; the ratios to plain JSON work on the
same bytes, measured in the same run, are what can be compared. What may not get slower is guarded in `speed/`.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

import msgspec
from bench.workloads import KINDS, Workload, codex_request, deltas, planning, streaming

DELTAS: Final = 2000


def main() -> None:
    print(f"{'plan + build + encode':<34} {'request':>11} {'CPU':>12} {'JSON only':>12} {'ratio':>7}")
    small = plan_figures(planning("Codex, 10 tools, 30 items", codex_request(60_000, 30)))
    large = plan_figures(planning("Codex, 10 tools, 500 items", codex_request(1_000_000, 500)))
    print(f"{'500 items cost, per item, against 30':<34} {(large / 500) / (small / 30):>36.2f}x")
    print()
    print(f"{'SSE + decode + assemble + encode':<34} {'per delta':>11} {'CPU':>12} {'JSON only':>12} {'ratio':>7}")
    for kind in KINDS:
        delta_figures(streaming(kind, deltas(kind, DELTAS)))


def plan_figures(workload: Workload) -> float:
    planned, loaded = cpu(workload.run), cpu(lambda: plain(workload))
    size = f"{sum(map(len, workload.given)) / 1000:.0f} kB"
    print(f"{workload.name:<34} {size:>11} {planned * 1e3:>9.3f} ms {loaded * 1e3:>9.3f} ms {planned / loaded:>6.1f}x")
    return planned


def delta_figures(workload: Workload) -> None:
    each, loaded = cpu(workload.run) / DELTAS, cpu(lambda: plain(workload)) / DELTAS
    print(f"{workload.name:<34} {'':>11} {each * 1e6:>9.2f} µs {loaded * 1e6:>9.2f} µs {each / loaded:>6.1f}x")


def plain(workload: Workload) -> int:
    """The same bytes, only decoded and encoded."""
    return sum(len(msgspec.json.encode(msgspec.json.decode(each))) for each in workload.given)


def cpu(action: Callable[[], object], *, seconds: float = 0.5) -> float:
    """Median CPU seconds of one call."""
    action()
    gc.collect()
    samples: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(samples) < 5:
        before = time.process_time()
        action()
        samples.append(time.process_time() - before)
    return sorted(samples)[len(samples) // 2]


if __name__ == "__main__":
    main()
