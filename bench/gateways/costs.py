"""What a gateway takes beside CPU time: the time until it answers, memory at rest, and memory after many requests."""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

from bench.gateways.client import run
from bench.gateways.cpu import CLIENTS, PATIENCE
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, Scene, first_answer
from bench.gateways.subjects import Subject
from bench.gateways.workloads import Workload, named

_SLICE: Final = 20
"""Calls on each connection between two looks at the clock."""


async def starts(scene: Scene, subject: Subject, times: int, progress: Progress) -> dict[str, Any]:
    """Seconds from the command to the first right answer, and memory at rest after it. A slow one is started twice."""
    listening, answered, memory, cpu = [], [], 0, []
    for number in range(times):
        progress.step(f"start {number + 1} of {subject.name}")
        began = time.monotonic()
        playing, seconds = await scene.start(subject)
        assert playing.tree is not None
        try:
            idle = playing.tree.memory()
            listening.append(seconds)
            await first_answer(playing)
            answered.append(time.monotonic() - began)
            cpu.append(playing.tree.cpu())
            memory = idle
        finally:
            playing.tree.end()
        if answered[-1] > 5 and number == 1:
            break
    middle = statistics.median
    told = {"listening": middle(listening), "answered": middle(answered), "cpu": middle(cpu)}
    return {**{name: round(value, 3) for name, value in told.items()}, "times": len(answered), "memory": memory}


async def grown(playing: Playing, requests: int, seconds: float, progress: Progress) -> dict[str, Any]:
    """Memory before and after so many small requests, or as many as there is time for."""
    assert playing.tree is not None
    progress.step(f"memory of {playing.subject.name}")
    if wrong_before := playing.given_up():
        raise RuntimeError(wrong_before)
    small = small_of(playing)
    await run(playing.ask(small), 3 * _SLICE, CLIENTS)
    before, until, made = playing.tree.memory(), time.monotonic() + seconds, 0
    wrong: list[str] = []
    while made < requests and time.monotonic() < until and not wrong:
        seen = await run(playing.ask(small), _SLICE, CLIENTS, patience=PATIENCE)
        made += seen.calls
        wrong += seen.wrong
    return {"requests": made, "before": before, "after": playing.tree.memory(), "wrong": wrong[:1]}


def small_of(playing: Playing) -> Workload:
    return named("Chat, small, whole" if "responses" not in playing.subject.doors else "small, whole")
