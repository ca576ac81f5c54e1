"""Streams as people see them: the first word, the gaps after it, and how many of them one process holds.

Held means: the gap that 99 of 100 do not exceed is at most twice that of the same streams without a gateway, and every
stream came to its right end.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from bench.gateways.client import Seen, run
from bench.gateways.cpu import PATIENCE
from bench.gateways.listeners import Listeners
from bench.gateways.process import Tree
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, Scene, first_answer
from bench.gateways.workloads import Workload, named
from bench.robustness.report import percentile

PACE: Final = 50
"""Milliseconds between two words of a stream that is held: as many as a quick model says."""
HELD: Final = 2.0
"""Times the gap without a gateway."""
NEWCOMERS: Final = 100
_RAMP: Final = 0.4
"""Seconds in which they come, for each second of looking at them; and until they are looked at."""
_SETTLE: Final = 0.2
_TOLD: Final = 0.5
"""Of the gaps that there would be if every word came alone."""
_ENDING: Final = 45.0
"""Seconds that the last stream may take to its end."""
_BEHIND: Final = 10.0
"""The same, and for newcomers, where they are not held anyway."""


def paced(seconds: float, pace: int = PACE) -> Workload:
    return Workload("held", "responses", f"text-{round(seconds * 1000 / pace)}-{pace}", stream=True)


async def first_words(scene: Scene, direct: Playing, rounds: int, calls: int, progress: Progress) -> dict[str, Any]:
    """One client, in turn with one that has no gateway: what is added to the first word, and the gaps. Milliseconds."""
    workload = named("200 deltas, 2 ms apart")
    players = [direct, *(each for each in scene.playing if not each.subject.reason(workload))]
    all_seen: dict[str, Seen] = {each.subject.key: Seen() for each in players}
    for number in range(rounds):
        for each in players:
            progress.step(f"first words, round {number + 1}: {each.subject.name}")
            kept = all_seen[each.subject.key]
            if kept.wrong or (given_up := each.given_up()):
                kept.wrong = kept.wrong or [given_up]
                continue
            seen = await run(each.ask(workload), calls, 1, timed=True, patience=PATIENCE)
            each.hung += seen.hung
            kept.first += seen.first
            kept.gaps += seen.gaps
            kept.wrong += seen.wrong
    told: dict[str, Any] = {}
    base = all_seen[direct.subject.key]
    for key, seen in all_seen.items():
        if seen.wrong or not seen.first:
            told[key] = {"wrong": (seen.wrong or ["no word"])[0]}
            continue
        told[key] = {
            "first_p50": _ms(percentile(seen.first, 0.5)),
            "first_p99": _ms(percentile(seen.first, 0.99)),
            "added_p50": _ms(percentile(seen.first, 0.5) - percentile(base.first, 0.5)),
            "gap_p50": _ms(percentile(seen.gaps, 0.5)),
            "gap_p99": _ms(percentile(seen.gaps, 0.99)),
        }
    return told


async def hold(
    playing: Playing, streams: int, seconds: float, before: int = 0, upstream: Tree | None = None, pace: int = PACE
) -> dict[str, Any]:
    """So many streams at once for so long. Gaps in milliseconds, memory in bytes for each stream, above `before`.

    `load`: how much of its core the load took, and the upstream with it if that is given.
    """
    ramp, settle = _RAMP * seconds, _SETTLE * seconds
    workload = paced(ramp + settle + seconds * 1.5, pace)
    loop = asyncio.get_running_loop()
    with Listeners() as listeners:
        began = loop.time()
        for number in range(streams):  # one after the other, so that their words do not come all at once
            listeners.begin(playing.ask(workload))
            if (early := began + ramp * number / streams - loop.time()) > 0:
                await asyncio.sleep(early)
        await asyncio.sleep(settle)
        listeners.gaps.clear()
        used, load, since = playing.cpu(), _load(upstream), time.monotonic()
        await asyncio.sleep(seconds)
        gaps, took = sorted(listeners.gaps), time.monotonic() - since
        used, load = (playing.cpu() - used) / took, (_load(upstream) - load) / took
        memory = (playing.tree.memory() - before) / streams if playing.tree else 0
        expected = round(streams * seconds * 1000 / pace)
        behind = len(gaps) < _TOLD * expected  # it holds them not: nobody needs to know for how long
        newcomers = await _newcomers(playing, _BEHIND if behind else PATIENCE)
        completed = await asyncio.to_thread(listeners.right, _BEHIND if behind else _ENDING)
    return {
        "gap_p50": _ms(percentile(gaps, 0.5)) if gaps else 0,
        "gap_p99": _ms(percentile(gaps, 0.99)) if gaps else 0,
        "gaps": len(gaps),
        "expected_gaps": expected,
        "completed": completed,
        "memory": round(memory),
        "core": round(used, 3),
        "load": round(load, 3),
        "newcomers": newcomers,
    }


def _load(upstream: Tree | None) -> float:
    return time.process_time() + (upstream.cpu() if upstream else 0.0)


async def _newcomers(playing: Playing, patience: float) -> dict[str, float]:
    """Clients who come all at once while the streams go on: how long their small answers take. Milliseconds."""
    small = named("small, whole")
    seen = Seen()
    loop = asyncio.get_running_loop()

    async def come() -> None:
        began = time.perf_counter()
        try:
            seen.wrong += (await run(playing.ask(small), 1, 1, patience=patience)).wrong
        except OSError as error:
            seen.wrong.append(str(error))
        seen.took.append(time.perf_counter() - began)

    await asyncio.gather(*(loop.create_task(come()) for _ in range(NEWCOMERS)))
    told = {"p50": _ms(percentile(seen.took, 0.5)), "p99": _ms(percentile(seen.took, 0.99))}
    return {**told, "wrong": len(seen.wrong)}


def is_held(figures: dict[str, Any], direct: dict[str, Any], streams: int) -> bool:
    """Whoever keeps words back and tells many at once has short gaps, too, but few."""
    whole = figures["completed"] == streams and figures["gaps"] >= _TOLD * figures["expected_gaps"]
    return bool(whole and figures["gap_p99"] <= HELD * direct["gap_p99"])


async def hold_all(
    scene: Scene, direct: Playing, counts: tuple[int, ...], seconds: float, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Subject → streams → figures; whoever does not hold so many is not asked to hold more."""
    told: dict[str, dict[str, Any]] = {}
    base: dict[int, dict[str, Any]] = {}
    for each in [direct, *scene.playing]:
        if each.subject.reason(paced(seconds)) or each.subject.lean:
            continue  # what a lean one does not keep, it does not keep at the end of a stream
        if wrong := each.given_up():
            told[each.subject.key] = {str(counts[0]): {"wrong": wrong, "held": False}}
            continue
        fresh = None
        try:
            fresh, _ = await scene.start(each.subject)  # what others have left in its memory is no stream's
            told[each.subject.key] = await _hold_more(fresh, counts, seconds, base, scene.upstream, progress)
        except (OSError, RuntimeError) as error:
            told[each.subject.key] = {str(counts[0]): {"wrong": str(error)[:200], "held": False}}
        finally:
            if fresh is not None and fresh.tree is not None:
                fresh.tree.end()
    return told


async def _hold_more(
    playing: Playing,
    counts: tuple[int, ...],
    seconds: float,
    base: dict[int, dict[str, Any]],
    upstream: Tree,
    progress: Progress,
) -> dict[str, Any]:
    """`base`: the figures without a gateway, which are measured first."""
    held: dict[str, Any] = {}
    await first_answer(playing)
    await run(playing.ask(named("200 deltas, coalesced")), 2, 20)  # what is loaded once is no stream's
    before = playing.tree.memory() if playing.tree else 0
    for count in counts:
        progress.step(f"{count} streams at {playing.subject.name}")
        try:
            figures = await hold(playing, count, seconds, before, upstream)
        except OSError as error:
            held[str(count)] = {"wrong": str(error)[:100], "held": False}
            break
        base.setdefault(count, figures)
        held[str(count)] = {**figures, "held": is_held(figures, base[count], count)}
        if not held[str(count)]["held"]:
            break
    return held


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
