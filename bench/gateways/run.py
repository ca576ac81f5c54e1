"""One run of everything: which subjects, how long, and the figures as one document.

In: the size of the run. Out: a dictionary that goes into `bench/results/` as JSON; the page is made from such documents
and from nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.gateways import costs, cpu, profile, streams
from bench.gateways.machine import Watch
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, Scene, staged
from bench.gateways.subjects import DEFAULT, DIRECT, FLOORS, LEAN, PEERS, Subject, describe
from bench.gateways.workloads import WORKLOADS, Workload

PROFILED: Final = ("small, whole", "200 deltas, coalesced", "200 deltas, 2 ms apart", "Codex request 38 kB, whole")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done."""

    rounds: int
    seconds: float
    """For each slot."""
    first_rounds: int
    held: tuple[int, ...]
    held_seconds: float
    requests: int
    """At most, to see what memory does."""
    requests_seconds: float
    """For ours; others have a tenth of it."""
    starts: int
    profiled: tuple[str, ...] = PROFILED
    """Workloads of which it is told where their time goes."""


OWN: Final = Size(4, 0.6, 6, (500, 1000, 1500), 4.0, 100_000, 120.0, 5)
WITH_PEERS: Final = Size(3, 0.5, 3, (500, 1000, 1500), 4.0, 100_000, 100.0, 3)
QUICK: Final = Size(1, 0.1, 1, (20,), 1.0, 800, 100.0, 1, PROFILED[:1])


async def everything(
    size: Size, subjects: Sequence[Subject], workloads: Sequence[Workload] = WORKLOADS, note: str = ""
) -> dict[str, Any]:
    watch = Watch()
    async with staged(subjects) as scene:
        for key, why in scene.absent.items():
            print(f"{key} plays no part: {why}", file=sys.stderr)
        with Progress("bench", _steps(size, scene, workloads)) as progress:
            direct, _ = await scene.start(DIRECT)
            told: dict[str, Any] = {
                "cpu": await cpu.measure(scene, workloads, size.rounds, size.seconds, progress),
                "first": await streams.first_words(scene, direct, size.first_rounds, 3, progress),
                "held": await streams.hold_all(scene, direct, size.held, size.held_seconds, progress),
                "memory": {},
                "start": {},
            }
            for playing in scene.playing:
                key = playing.subject.key
                if playing.subject.kind in ("ours", "gateway"):
                    seconds = size.requests_seconds / (1 if key == DEFAULT.key else 10)
                    told["memory"][key] = await _told(costs.grown(playing, size.requests, seconds, progress))
                told["start"][key] = await _told(costs.starts(scene, playing.subject, size.starts, progress))
        found = describe([each.subject for each in scene.playing])
        absent = dict(scene.absent)
    told["profile"] = profile.shares([each.name for each in workloads if each.name in size.profiled])
    return {"made": watch.told(note), "subjects": [*found, *describe([DIRECT])], "absent": absent, **told}


async def _told(figures: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """One that breaks now has no figure for this, and takes nobody else's."""
    try:
        return await figures
    except (OSError, RuntimeError) as error:
        return {"wrong": str(error)[:200]}


def chosen(peers: bool, only: Sequence[str] = ()) -> list[Subject]:
    every = [DEFAULT, LEAN, *FLOORS, *(PEERS if peers else ())]
    return [each for each in every if not only or each.key in only]


def _steps(size: Size, scene: Scene, workloads: Sequence[Workload]) -> int:
    players: list[Playing] = scene.playing
    count = len(players)
    spoken = sum(not each.subject.reason(streams.paced(1)) for each in players) + 1
    held = spoken - sum(each.subject.lean for each in players)
    gateways = sum(each.subject.kind in ("ours", "gateway") for each in players)
    return (
        size.rounds * len(workloads) * count
        + size.first_rounds * spoken
        + len(size.held) * held
        + gateways
        + size.starts * count
    )
