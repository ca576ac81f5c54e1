"""CPU time for each request: every subject and workload in turn, round after round, the middle of all rounds.

What is compared was measured within seconds of each other; a slow minute of the machine is in all of them. Told
beside it is what the load itself took: it and the upstream must be far cheaper than what they measure.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.gateways.client import Seen, connect, finish, run
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, Scene, make_chain
from bench.gateways.workloads import Workload

CLIENTS: Final = 16
PATIENCE: Final = 45.0
"""Seconds that all calls of one slot may take together, many times what is meant."""
SLOW: Final = 4.0
"""Times what a slot should take: who is as slow as that has one round, and not all of everybody's time."""


@dataclass(slots=True)
class Cell:
    """One workload at one subject. Microseconds for each call, a figure for each round."""

    calls: int = 0
    slow: bool = False
    cpu: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    upstream: list[float] = field(default_factory=list)
    reason: str = ""
    wrong: str = ""

    def told(self) -> dict[str, Any]:
        if self.reason:
            return {"not": self.reason}
        if self.wrong:
            return {"wrong": self.wrong}
        return {
            "us": round(statistics.median(self.cpu), 1),
            "low": round(min(self.cpu), 1),
            "high": round(max(self.cpu), 1),
            "rounds": len(self.cpu),
            "calls": self.calls * CLIENTS * len(self.cpu),
            "load_us": round(statistics.median(self.load), 1),
            "upstream_us": round(statistics.median(self.upstream), 1),
        }


async def measure(
    scene: Scene, workloads: Sequence[Workload], rounds: int, seconds: float, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Workload → subject → figures."""
    cells = {(workload.name, each.subject.key): Cell() for workload in workloads for each in scene.playing}
    for workload in workloads:
        for each in scene.playing:
            progress.say(f"trying {workload.name} at {each.subject.name}")
            await _calibrate(cells[workload.name, each.subject.key], workload, each, seconds)
    for number in range(rounds):
        for workload in workloads:
            turn = scene.playing[number % len(scene.playing) :] + scene.playing[: number % len(scene.playing)]
            for each in turn:
                cell = cells[workload.name, each.subject.key]
                progress.step(f"round {number + 1}: {workload.name}, {each.subject.name}")
                if not cell.reason and not cell.wrong and not (cell.slow and cell.cpu):
                    await _slot(cell, workload, each, scene)
    return {
        workload.name: {each.subject.key: cells[workload.name, each.subject.key].told() for each in scene.playing}
        for workload in workloads
    }


async def _calibrate(cell: Cell, workload: Workload, playing: Playing, seconds: float) -> None:
    """How many calls a slot takes; and whether the subject can do this at all, and right."""
    cell.reason = playing.subject.reason(workload) or playing.given_up()
    if cell.reason:
        return
    try:
        if workload.part == "chain" and (wrong := await make_chain(playing)):
            cell.wrong = wrong
            return
        each = 0.0
        for _ in range(2):  # what is loaded once is no call's
            began = time.perf_counter()
            seen = await run(playing.ask(workload), 1, CLIENTS, patience=PATIENCE)
            each = time.perf_counter() - began
            if seen.hung or each > 2 * seconds:
                break
    except OSError as error:
        cell.wrong = f"lets nobody in: {error}"
        playing.hung += 1
        return
    playing.hung += seen.hung
    if seen.wrong:
        cell.wrong = seen.wrong[0][:300]
        return
    cell.calls = max(1, round(seconds / each))
    cell.slow = each > SLOW * seconds


async def _slot(cell: Cell, workload: Workload, playing: Playing, scene: Scene) -> None:
    if wrong := playing.given_up():
        cell.wrong = wrong
        return
    seen = Seen()
    try:
        if (
            workload.part == "schema" and not cell.slow
        ):  # who checks in a process of its own may have ended it meanwhile
            await run(playing.ask(workload), 1, CLIENTS, patience=PATIENCE)
        made = await connect(playing.ask(workload), seen, cell.calls, CLIENTS)
    except OSError as error:
        cell.wrong = f"lets nobody in: {error}"
        playing.hung += 1
        return
    subject, load, upstream = playing.cpu(), time.process_time(), scene.upstream.cpu()
    await finish(made, seen, PATIENCE)
    load, upstream = time.process_time() - load, scene.upstream.cpu() - upstream
    await asyncio.sleep(playing.subject.settle if playing.tree else 0)
    subject = playing.cpu() - subject
    playing.hung += seen.hung
    if seen.wrong:
        cell.wrong = seen.wrong[0][:300]
        return
    for figures, used in ((cell.cpu, subject), (cell.load, load), (cell.upstream, upstream)):
        figures.append(used / seen.calls * 1e6)
