"""Many traces: what it costs to write, list, filter, sum and forget them.

Run `python -m bench.traces` (a million, some minutes and two gigabytes of disk), or `--count 20000`. CPU time is that
of the whole process. While traces are forgotten, a loop beside them counts its turns: it must go on.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.robustness.report import table

from isthmus.ports.packed import pack_all
from isthmus.ports.traced import Piece, Timings, Trace, TracedBody, TracedCall, TracedDecision, TraceSummary
from isthmus.ports.traces import TraceFilter
from isthmus.store.traces.sqlite import SqliteTraces

BOUND: Final = 0.2
"""Seconds of CPU time that a question may take."""
_WEEK: Final = 7 * 86_400.0
_BEGAN: Final = 1_790_000_000.0
_GROUP: Final = 200


@dataclass(frozen=True, slots=True)
class Measured:
    write: float
    """Seconds of CPU time for each trace."""
    size: int
    """Bytes of the file for each."""
    questions: dict[str, float]
    forgot: int
    steps: int
    slowest_step: float
    """Seconds of CPU time."""
    turns: int
    """Of the loop, while that went on."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.traces", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    count = parser.parse_args().count
    measured = asyncio.run(measure(count))
    print("\n".join(show(count, measured)))
    slow = [name for name, seconds in measured.questions.items() if seconds > BOUND]
    raise SystemExit(f"over {BOUND * 1000:g} ms: {', '.join(slow)}" if slow else 0)


async def measure(count: int) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "isthmus.traces.db"
        store = SqliteTraces(path)
        try:
            write = _fill(store, count)
            size = path.stat().st_size // count
            questions = {name: await _cost(ask) for name, ask in _questions(store, count).items()}
            return Measured(write, size, questions, *await _forget(store, count))
        finally:
            store.close()


def _fill(store: SqliteTraces, count: int) -> float:
    chance, spent = random.Random(1), 0.0
    for start in range(0, count, _GROUP):
        group = pack_all(_trace(number, count, chance) for number in range(start, min(start + _GROUP, count)))
        before = time.process_time()
        store.keep(group)
        spent += time.process_time() - before
    return spent / count


def _trace(number: int, count: int, chance: random.Random) -> Trace:
    """A week of an office: five providers, twenty models, forty keys, one in fifty fails."""
    failed = chance.random() < 0.02
    id = f"{chance.getrandbits(96):024x}"
    at = _BEGAN + _WEEK * number / count
    summary = TraceSummary(
        id=f"req_{id}",
        at=at,
        ended_at=at,
        response=f"resp_{id}",
        owner="local",
        key=f"key{number % 40:02d}",
        client=("", "codex", "claude-code")[number % 3],
        door=("responses", "chat", "messages")[number % 3],
        method="POST",
        path="/v1/responses",
        asked_model="some/model",
        provider=f"provider{number % 5}",
        model=f"model{number % 20}",
        outcome="failed" if failed else "completed",
        code="upstream_timeout" if failed else "",
        status=200,
        input_tokens=1_000,
        output_tokens=100,
        cost=0.01,
        total=chance.random() * 20,
        first_token=chance.random(),
        thread=f"session:{number // 20}",
    )
    pieces = tuple(Piece(f"messages[{each}]", 400, f"{chance.getrandbits(64):016x}", "user") for each in range(8))
    call = TracedCall(summary.provider, summary.model, 1, "first", 0.001, TracedBody(3_200, pieces), 0.2)
    decisions = tuple(TracedDecision(f"field{each}", "supported", "sent as it is") for each in range(6))
    return Trace(summary=summary, timings=Timings(total=1.0), request=call.body, calls=(call,), decisions=decisions)


def _questions(store: SqliteTraces, count: int) -> dict[str, Callable[[], Awaitable[Any]]]:
    middle = _BEGAN + _WEEK / 2
    page: dict[str, Any] = {"limit": 100}
    return {
        "list, the newest": lambda: store.list("local", **page),
        "list, the oldest": lambda: store.list("local", **page, order="asc"),
        "list, a page in the middle": lambda: store.list("local", **page, after=count // 2),
        "filter, one provider": lambda: store.list("local", TraceFilter(provider="provider3"), **page),
        "filter, one key and failed": lambda: store.list("local", TraceFilter(key="key07", outcome="failed"), **page),
        "filter, nothing matches": lambda: store.list("local", TraceFilter(key="key07", model="model3"), **page),
        "filter, before a time": lambda: store.list("local", TraceFilter(model="model3", until=middle), **page),
        "one conversation": lambda: store.list("local", TraceFilter(thread=f"session:{count // 40}"), **page),
        "totals": lambda: store.totals("local"),
        "totals by model": lambda: store.totals("local", by="model"),
        "totals by key, failed": lambda: store.totals("local", TraceFilter(outcome="failed"), by="key"),
        "totals by hour": lambda: store.totals("local", by="time"),
        "how many there are": lambda: store.stats("local"),
    }


async def _cost(ask: Callable[[], Awaitable[Any]]) -> float:
    """The least of three: what else runs here can only add to it."""
    costs = []
    for _ in range(3):
        before = time.process_time()
        await ask()
        costs.append(time.process_time() - before)
    return min(costs)


async def _forget(store: SqliteTraces, count: int) -> tuple[int, int, float, int]:
    """Forget a tenth of them as a gateway does, beside a loop that counts its turns."""
    cutoff, turns = _BEGAN + _WEEK / 10, 0
    costs: list[float] = []
    gone: list[int] = []

    def prune() -> None:
        while True:
            before = time.thread_time()
            went = store.prune(older_than=cutoff, most=500)
            costs.append(time.thread_time() - before)
            gone.append(went)
            if not went:
                return

    pruning = asyncio.ensure_future(asyncio.to_thread(prune))
    while not pruning.done():
        turns += 1
        await asyncio.sleep(0.0005)
    await pruning
    return sum(gone), len(gone), max(costs), turns


def show(count: int, measured: Measured) -> list[str]:
    rows = [(name, f"{seconds * 1000:.1f} ms") for name, seconds in measured.questions.items()]
    return [
        f"{count:,} traces, {measured.size:,} bytes each; written in {measured.write * 1e6:.0f} µs of CPU time each",
        "",
        *table(("question", "CPU time"), rows),
        "",
        f"{measured.forgot:,} forgotten in {measured.steps:,} steps, the slowest {measured.slowest_step * 1000:.1f} ms "
        f"of CPU time beside the loop, which had {measured.turns:,} turns meanwhile",
    ]


if __name__ == "__main__":
    main()
