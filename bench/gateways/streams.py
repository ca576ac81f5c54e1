"""Streams as people see them: the first word, the gaps after it, and how many of them one process holds.

Held means: the gap that 99 of 100 do not exceed is at most twice that of the same streams without a gateway, and every
stream came to its right end.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from bench.gateways.client import Connection, Seen, run
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


def paced(seconds: float) -> Workload:
    return Workload("held", "responses", f"text-{round(seconds * 1000 / PACE)}-{PACE}", stream=True)


async def first_words(scene: Scene, direct: Playing, rounds: int, calls: int, progress: Progress) -> dict[str, Any]:
    """One client, in turn with one that has no gateway: what is added to the first word, and the gaps. Milliseconds."""
    workload = named("200 deltas, 2 ms apart")
    players = [direct, *(each for each in scene.playing if not each.subject.reason(workload))]
    all_seen: dict[str, Seen] = {each.subject.key: Seen() for each in players}
    for number in range(rounds):
        for each in players:
            progress.step(f"first words, round {number + 1}: {each.subject.name}")
            seen = await run(each.ask(workload), calls, 1, timed=True)
            kept = all_seen[each.subject.key]
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


async def hold(playing: Playing, streams: int, seconds: float, before: int = 0) -> dict[str, Any]:
    """So many streams at once for so long. Gaps in milliseconds, memory in bytes for each stream, above `before`."""
    ramp, settle = _RAMP * seconds, _SETTLE * seconds
    workload = paced(ramp + settle + seconds * 1.5)
    seen, loop = Seen(), asyncio.get_running_loop()
    made: list[Connection] = []
    began = loop.time()
    for number in range(streams):  # one after the other, so that their words do not come all at once
        connection = Connection(playing.ask(workload), seen, 1, timed=True)
        made.append(connection)
        await loop.create_connection(lambda connection=connection: connection, "127.0.0.1", playing.port)  # type: ignore[misc]
        connection.begin()
        if (early := began + ramp * number / streams - loop.time()) > 0:
            await asyncio.sleep(early)
    await asyncio.sleep(settle)
    seen.gaps.clear()
    used = playing.cpu()
    since = time.monotonic()
    await asyncio.sleep(seconds)
    gaps, used = sorted(seen.gaps), (playing.cpu() - used) / (time.monotonic() - since)
    memory = (playing.tree.memory() - before) / streams if playing.tree else 0
    newcomers = await _newcomers(playing)
    await _rest(made, seen)
    right = seen.calls - len(seen.wrong)
    return {
        "gap_p50": _ms(percentile(gaps, 0.5)) if gaps else 0,
        "gap_p99": _ms(percentile(gaps, 0.99)) if gaps else 0,
        "gaps": len(gaps),
        "expected_gaps": round(streams * seconds * 1000 / PACE),
        "completed": max(0, right),
        "memory": round(memory),
        "core": round(used, 3),
        "newcomers": newcomers,
    }


async def _newcomers(playing: Playing) -> dict[str, float]:
    """Clients who come all at once while the streams go on: how long their small answers take. Milliseconds."""
    small = named("small, whole")
    seen = Seen()
    loop = asyncio.get_running_loop()

    async def come() -> None:
        began = time.perf_counter()
        one = await run(playing.ask(small), 1, 1, patience=30.0)
        seen.took.append(time.perf_counter() - began)
        seen.wrong += one.wrong

    await asyncio.gather(*(loop.create_task(come()) for _ in range(NEWCOMERS)))
    told = {"p50": _ms(percentile(seen.took, 0.5)), "p99": _ms(percentile(seen.took, 0.99))}
    return {**told, "wrong": len(seen.wrong)}


async def _rest(made: list[Connection], seen: Seen, patience: float = 45.0) -> None:
    """Wait for the ends."""
    _, late = await asyncio.wait([each.over for each in made], timeout=patience)
    if late:
        for each in made:
            each.give_up(f"no end within {patience:g} s")


def is_held(figures: dict[str, Any], direct: dict[str, Any], streams: int) -> bool:
    whole = figures["completed"] == streams and figures["gaps"] > 0
    return bool(whole and figures["gap_p99"] <= HELD * direct["gap_p99"])


async def hold_all(
    scene: Scene, direct: Playing, counts: tuple[int, ...], seconds: float, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Subject → streams → figures; whoever does not hold so many is not asked to hold more."""
    told: dict[str, dict[str, Any]] = {}
    base: dict[int, dict[str, Any]] = {}
    for each in [direct, *scene.playing]:
        if each.subject.reason(paced(seconds)) or each.subject.key.endswith("-lean"):
            continue  # what a lean one does not keep, it does not keep at the end of a stream
        fresh, _ = await scene.start(each.subject)  # what others have left in its memory is no stream's
        try:
            told[each.subject.key] = await _hold_more(fresh, counts, seconds, base, progress)
        finally:
            if fresh.tree is not None:
                fresh.tree.end()
    return told


async def _hold_more(
    playing: Playing, counts: tuple[int, ...], seconds: float, base: dict[int, dict[str, Any]], progress: Progress
) -> dict[str, Any]:
    """`base`: the figures without a gateway, which are measured first."""
    held: dict[str, Any] = {}
    await first_answer(playing)
    await run(playing.ask(named("200 deltas, coalesced")), 2, 20)  # what is loaded once is no stream's
    before = playing.tree.memory() if playing.tree else 0
    for count in counts:
        progress.step(f"{count} streams at {playing.subject.name}")
        try:
            figures = await hold(playing, count, seconds, before)
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
