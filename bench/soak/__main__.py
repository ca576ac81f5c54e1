"""`python -m bench.soak`: mixed load on one worker for half an hour: memory flat, nothing piles up, no stream lost.

The gateway runs as it comes, with SQLite and traces. It is looked at from outside, by the kernel and by `/ready`,
every few seconds while the load goes on, and once more when it is over. `--plant` puts a leak into it, to see that it
is found; then it is over.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, staged
from bench.gateways.subjects import DEFAULT, Start, Subject
from bench.robustness.client import fetch
from bench.robustness.report import Report, show
from bench.soak.judge import Limits, Sample, found, judge
from bench.soak.load import Load
from bench.soak.plants import HOOKS, Cutting

CLIENTS = 12
LOOKS = 90
"""So many samples in all, and at most two each second."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--plant", choices=[*HOOKS, "streams"], help="a leak, to see it found")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    given = parser.parse_args()
    report = uvloop.run(soak(given.minutes * 60, seed=given.seed, plant=given.plant or "", clients=given.clients))
    print(show(report))
    sys.exit(1 if report.broken else 0)


async def soak(seconds: float, *, seed: int = 25, plant: str = "", clients: int = CLIENTS) -> Report:
    report = Report(f"{seconds / 60:g} minutes of mixed load on one worker" + (f", {plant} leaking" if plant else ""))
    # What one look finds to be memory may be a cache that fills: a short soak can only see much.
    limits = Limits(memory=10e6 if seconds > 600 else 60e6)
    async with AsyncExitStack() as stack:
        scene = await stack.enter_async_context(staged([planted(plant)]))
        if scene.absent:
            raise RuntimeError(f"the gateway did not start: {scene.absent}")
        playing = scene.playing[0]
        asked = playing
        if plant == "streams":
            asked = dataclasses.replace(playing, port=await stack.enter_async_context(Cutting(playing.port)))
        load = Load(asked, seed)
        samples: list[Sample] = []
        working = asyncio.create_task(load.clients(clients))
        try:
            await _watch(playing, load, working, samples, seconds, limits if plant else None)
        finally:
            load.over = True
            await asyncio.wait([working], timeout=90)
        if not working.done():
            report.problems.append("clients still wait for an answer 90 s after the end")
            working.cancel()
        judge(report, samples, limits)
        await _rest(report, playing)
        assert playing.tree is not None
        bugs = playing.tree.log.read_text(errors="replace").count("Traceback (most recent call last)")
        report.add("bugs in the log", bugs, "0", kept=not bugs)
    lost = len(load.wrong)
    report.add("answers, all of them right", f"{load.answers - lost:,} of {load.answers:,}", "all", kept=not lost)
    report.add("clients who left in the middle", f"{load.left:,}")
    report.add("kinds of requests", len(load.kinds), "≥ 10", kept=len(load.kinds) >= 10)
    report.problems += load.wrong[:5]
    return report


def planted(plant: str) -> Subject:
    """Our gateway as it comes; with a leak, if one is asked for."""
    if plant not in HOOKS:
        return DEFAULT

    def start(folder: Path, port: int, upstream: int) -> Start:
        assert DEFAULT.start is not None
        arguments, environment = DEFAULT.start(folder, port, upstream)
        config = Path(arguments[-1])
        hooks = f'[hooks]\nuses = ["plants.py:{HOOKS[plant]}"]\nfolder = "{Path(__file__).parent}"\n'
        config.write_text(config.read_text() + hooks)
        return arguments, environment

    return dataclasses.replace(DEFAULT, start=start)


async def _watch(
    playing: Playing,
    load: Load,
    working: asyncio.Task[None],
    samples: list[Sample],
    seconds: float,
    looked_for: Limits | None,
) -> None:
    """`looked_for`: what is planted is over these limits, and nothing else is of interest then."""
    began = time.monotonic()
    pause = max(0.5, seconds / LOOKS)
    with Progress("soak", LOOKS) as progress:
        while (at := time.monotonic() - began) < seconds and not working.done():
            samples.append(await look(playing, at))
            progress.step(f"{load.answers:,} answers, {len(load.wrong)} wrong, {samples[-1].memory / 1e6:.0f} MB")
            if looked_for is not None and (load.wrong or found(samples, looked_for)):
                break
            await asyncio.wait([working], timeout=pause)


async def look(playing: Playing, at: float) -> Sample:
    tree = playing.tree
    assert tree is not None
    tasks = (await fetch(playing.port, "GET", "/ready")).json["tasks"]
    place = Path(f"/proc/{tree.pid}")
    files, threads = len(os.listdir(place / "fd")), len(os.listdir(place / "task"))
    return Sample(at, tree.memory(), files, tasks, threads, len(tree.pids()) - 1)


async def _rest(report: Report, playing: Playing) -> None:
    """When everybody has gone, nothing goes on."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        running = (await fetch(playing.port, "GET", "/ready")).json["running"]
        if not running:
            break
        await asyncio.sleep(0.1)
    report.add("responses under way when all had gone", running, "0", kept=not running)


if __name__ == "__main__":
    main()
