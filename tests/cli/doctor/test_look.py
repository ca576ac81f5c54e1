"""Areas side by side, each within its time; what goes wrong in one is told there and nowhere else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from isthmus.cli.doctor.finding import Area, Finding
from isthmus.cli.doctor.look import look_at_all
from isthmus.errors import ConfigError
from own_time import run_in_own_time

FINE = [Finding("x", "ok", "fine")]


def broken() -> Sequence[Finding]:
    raise ConfigError("the file is gone")


def buggy() -> Sequence[Finding]:
    raise KeyError("oops")


async def never() -> Sequence[Finding]:
    await asyncio.Event().wait()
    return []


async def quick() -> Sequence[Finding]:
    return FINE


def test_what_goes_wrong_in_one_area_is_a_finding_of_that_one() -> None:
    ended: list[str] = []
    areas = [Area("a", lambda: FINE), Area("b", broken), Area("c", buggy), Area("d", quick), Area("e", never)]
    found = run_in_own_time(look_at_all(areas, 5.0, ended.append))
    assert [looked.area for looked in found] == ["a", "b", "c", "d", "e"]
    assert sorted(ended) == ["a", "b", "c", "d", "e"]
    told = {looked.area: looked.findings[0] for looked in found}
    assert told["a"] is told["d"] is FINE[0]
    assert (told["b"].state, told["b"].told) == ("problem", "could not be looked at: the file is gone")
    assert (told["c"].state, "KeyError" in told["c"].told) == ("problem", True)
    assert (told["e"].check, told["e"].told) == ("time", "could not be looked at within 5 s")


def test_a_thread_that_hangs_is_left_alone() -> None:
    let_go = threading.Event()

    def hang() -> Sequence[Finding]:
        let_go.wait(60)
        return FINE

    try:
        (found,) = asyncio.run(look_at_all([Area("slow", hang)], 0.05, lambda name: None))
    finally:
        let_go.set()  # its word comes when nobody waits for it any more
    assert found.findings[0].check == "time"


def test_they_are_looked_at_side_by_side() -> None:
    met = threading.Barrier(2, timeout=60)

    def meet() -> Sequence[Finding]:
        met.wait()
        return FINE

    found = asyncio.run(look_at_all([Area("a", meet), Area("b", meet)], 60.0, lambda name: None))
    assert [looked.findings for looked in found] == [FINE, FINE]
