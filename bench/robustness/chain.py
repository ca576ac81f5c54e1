"""A long conversation through the gateway, turn by turn with `previous_response_id`: what each turn costs.

Every turn sends one new message and the same tools and instructions, and gets an answer of the same size. The model
must be given the whole history each time, so the work of a turn grows with its number, in a straight line; what is
stored for a turn must not grow at all.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench.robustness.client import Client, Json
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway
from bench.robustness.upstream import Call, Upstream, delta

WORDS = [word + ending for word in ("bridge", "token", "stream", "model") for ending in ("", "s", "ing", "ed")]
TOOLS = [
    {
        "type": "function",
        "name": f"tool_{number}",
        "description": "It does what its name says, and it says how. " * 20,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for number in range(16)
]
NOISE = 0.005
"""Seconds of CPU time by which turns of the same work may differ, on a machine with nothing else to do."""
INSTRUCTIONS = "You are careful, brief and kind to the reader. " * 200


@dataclass(frozen=True, slots=True)
class Cost:
    """One turn."""

    stored: int
    """Bytes in the database after it."""
    cpu: float
    """Seconds of CPU time of the gateway."""
    wall: float
    sent: int
    """Bytes that the upstream was sent."""
    naive: int
    """What one document with the whole history for every turn so far would take."""


async def check(turns: int = 200, noise: float = NOISE) -> Report:
    report = Report(f"Chain growth: {turns} turns with `previous_response_id`, streamed")
    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(_handle) as upstream, running_gateway(Path(folder), upstream.base_url) as gateway:
            costs = await _converse(report, gateway, upstream, turns)
            report.add("tracebacks in the log", gateway.tracebacks(), "0", kept=not gateway.tracebacks())
    _judge_space(report, costs)
    _judge_time(report, costs, noise)
    _tabulate(report, costs)
    return report


async def _converse(report: Report, gateway: GatewayProcess, upstream: Upstream, turns: int) -> list[Cost]:
    costs: list[Cost] = []
    previous: str | None = None
    naive = said = 0
    async with await Client.open(gateway.port) as client:
        # What is loaded once is no turn's cost.
        await client.request("POST", "/v1/responses", _ask(None, 0, store=False))
        for number in range(turns):
            cpu, wall = gateway.cpu(), time.perf_counter()
            await client.send("POST", "/v1/responses", _ask(previous, number, store=True))
            last: Json = {}
            async for event in client.events():
                last = event
            previous = last["response"]["id"]
            call = upstream.calls[-1]
            said += len(_text(f"question {number}", 120)) + len(_text(f"answer {number}", 120))
            naive += said + len(INSTRUCTIONS) + len(str(TOOLS))
            costs.append(Cost(_stored(gateway), gateway.cpu() - cpu, time.perf_counter() - wall, call.size, naive))
    messages = [each for each in upstream.calls[-1].body["messages"] if each["role"] in ("user", "assistant")]
    whole = len(messages) == 2 * turns - 1 and all(f"{n}: " in str(messages[2 * n]) for n in range(turns))
    report.add("messages in the last turn's request", len(messages), f"{2 * turns - 1}, in order", kept=whole)
    return costs


def _ask(previous: str | None, number: int, *, store: bool) -> Json:
    question = f"{number}: {_text(f'question {number}', 120)}"
    asked: Json = {"input": question, "tools": TOOLS, "instructions": INSTRUCTIONS, "stream": True, "store": store}
    return {**asked, "previous_response_id": previous} if previous else asked


def _text(seed: str, words: int) -> str:
    """About 1.3 KB of words that compress no better than real ones."""
    chance = random.Random(seed)
    return " ".join(f"{chance.choice(WORDS)}{chance.randrange(10_000)}" for _ in range(words))


async def _handle(call: Call) -> None:
    await call.begin()
    number = call.words.partition(":")[0]
    await call.say(b"".join(delta(f"{word} ") for word in _text(f"answer {number}", 120).split(" ")))
    await call.end()


def _stored(gateway: GatewayProcess) -> int:
    with closing(sqlite3.connect(gateway.database)) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        return int(pages) * int(connection.execute("PRAGMA page_size").fetchone()[0])


def _judge_space(report: Report, costs: list[Cost]) -> None:
    half = len(costs) // 2
    first = (costs[half - 1].stored - costs[0].stored) / (half - 1)
    second = (costs[-1].stored - costs[half - 1].stored) / (len(costs) - half)
    told = f"{first / 1000:.2f} KB, then {second / 1000:.2f} KB"
    report.add("stored per turn, first half, second half", told, "the same, ± 25 %", kept=second < first * 1.25)
    share = costs[-1].naive / costs[-1].stored
    report.add("one document per turn would take", f"{costs[-1].naive / 1e6:.1f} MB, {share:.0f} times as much")


def _judge_time(report: Report, costs: list[Cost], noise: float) -> None:
    """A straight line through both quarters' medians must not bend upwards: then a turn's cost is a + b·number."""
    quarter = max(len(costs) // 4, 1)
    medians = [statistics.median(cost.cpu for cost in costs[n * quarter : (n + 1) * quarter]) for n in range(4)]
    early, late = medians[1] - medians[0], medians[3] - medians[2]
    told = ", ".join(f"{median * 1000:.1f}" for median in medians) + " ms"
    straight = late < 2 * max(early, 0) + noise  # a square would give three times as much
    report.add("CPU per turn, median of each quarter", told, "a straight line", kept=straight)
    per_message = (medians[3] - medians[0]) / (1.5 * len(costs)) * 1e6
    report.add("CPU per message of history", f"{per_message:.1f} µs")


def _tabulate(report: Report, costs: list[Cost]) -> None:
    report.head = ("turn", "stored KB", "KB per turn", "CPU ms", "wall ms", "sent upstream KB")
    total = len(costs)
    for number in sorted({1, total // 20, total // 4, total // 2, total * 3 // 4, total} - {0}):
        near = costs[max(number - 5, 0) : number + 4]
        cost = costs[number - 1]
        report.rows.append(
            (
                f"{number}",
                f"{cost.stored / 1000:.0f}",
                f"{cost.stored / 1000 / number:.2f}",
                f"{statistics.median(each.cpu for each in near) * 1000:.2f}",
                f"{statistics.median(each.wall for each in near) * 1000:.2f}",
                f"{cost.sent / 1000:.0f}",
            )
        )
