"""The loop's delay and the process's memory: measured, told once, and told with the place where it is stuck."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from isthmus.log import Told
from isthmus.observe.vitals import TICK, Vitals


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [each.msg.facts for each in caplog.records if isinstance(each.msg, Told) and each.msg.event == event]


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_the_lag_of_a_turn_is_how_late_it_was(clock: Clock) -> None:
    vitals = Vitals(clock=clock)
    for late, worst in ((0.0, 0.0), (0.3, 0.3), (0.0, 0.3)):
        clock.now += TICK + late
        vitals.tick()
        assert vitals.lag == pytest.approx(late)
        assert vitals.worst_lag == pytest.approx(worst)
    clock.now += 61
    vitals.tick()
    clock.now += 60
    assert vitals.worst_lag == pytest.approx(60.0 - TICK), "it goes on just now"
    vitals.stop()


async def test_a_slow_turn_is_told_and_not_each_of_many(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    vitals = Vitals(slow=0.5, clock=clock)
    for _ in range(5):
        clock.now += TICK + 0.7
        vitals.tick()
    vitals.stop()
    assert told(caplog, "loop.slow") == [{"seconds": 0.7}]


async def test_a_stuck_loop_is_named_with_its_stack_while_it_is_stuck() -> None:
    looked = threading.Event()
    stacks: list[str] = []

    class Seen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.msg, Told) and record.msg.event == "loop.stuck":
                stacks.append(record.msg.facts["at"])
                looked.set()

    seen, log = Seen(), logging.getLogger("isthmus.vitals")
    log.addHandler(seen)
    log.propagate = False  # the thread may still be telling when the next test has begun to listen
    vitals = Vitals(stuck=0.05)
    vitals.start()
    try:

        def a_function_that_never_ends() -> bool:
            return looked.wait(30)

        assert a_function_that_never_ends(), "the loop is stuck here until the log says so"
    finally:
        vitals.stop()
        log.removeHandler(seen)
        log.propagate = True
    assert "a_function_that_never_ends" in stacks[0]


async def test_one_that_stays_stuck_is_told_again_only_when_that_has_doubled(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    vitals = Vitals(stuck=5.0, clock=clock)
    for _ in range(100):
        clock.now += 1
        vitals.look()
    assert [facts["seconds"] for facts in told(caplog, "loop.stuck")] == [5.9, 11.9, 23.9, 47.9, 95.9]
    vitals.tick()
    vitals.stop()
    for _ in range(6):
        clock.now += 1
        vitals.look()
    assert len(told(caplog, "loop.stuck")) == 6, "another time is another story"


async def test_a_deep_stack_is_cut(caplog: pytest.LogCaptureFixture, clock: Clock) -> None:
    vitals = Vitals(stuck=0.1, clock=clock)
    vitals._thread = threading.get_ident()
    clock.now += 1

    def deeper(levels: int) -> None:
        deeper(levels - 1) if levels else vitals.look()

    deeper(200)
    assert told(caplog, "loop.stuck")[0]["at"].count(" < ") == 29


async def test_it_goes_on_by_itself() -> None:
    turns = asyncio.Queue[float]()

    class Counted(Vitals):
        def tick(self) -> None:
            super().tick()
            turns.put_nowait(self.lag)

    vitals = Counted()
    vitals.start()
    try:
        async with asyncio.timeout(30):
            assert [await turns.get() >= 0 for _ in range(2)] == [True, True]
    finally:
        vitals.stop()


MB = 1_000_000


async def test_memory_is_given_back_when_it_has_stopped_growing(clock: Clock) -> None:
    sizes = iter([100, 400, 600, 600, 550, 120, 600, 600])
    now = 100 * MB
    trimmed: list[int] = []

    def measure() -> int:
        nonlocal now
        now = next(sizes) * MB
        return now

    def trim() -> bool:
        trimmed.append(now)
        return True

    vitals = Vitals(clock=clock, memory=measure, trim=trim)
    vitals.look()
    vitals.look()
    assert trimmed == [], "it grows: it is in use"
    vitals.look()
    assert trimmed == [600 * MB]
    assert vitals.memory == 550 * MB, "measured anew"
    vitals.look()
    assert vitals.memory == 120 * MB
    vitals.look()
    vitals.look()
    assert trimmed == [600 * MB], "not again so soon"


async def test_it_is_given_back_also_when_it_was_still_in_use_the_first_time(clock: Clock) -> None:
    """In the middle of a storm nothing is free: what is left behind then was kept for ever."""
    now, free = 100 * MB, 0
    trimmed: list[float] = []

    def trim() -> bool:
        nonlocal now, free
        trimmed.append(clock.now)
        now, free = now - free, 0
        return True

    vitals = Vitals(clock=clock, memory=lambda: now, trim=trim)
    now = 1000 * MB
    for _ in range(5):
        clock.now += 1
        vitals.look()
    assert len(trimmed) == 1
    free = 880 * MB
    for _ in range(10):
        clock.now += 1
        vitals.look()
    assert vitals.memory == 120 * MB
    now = 200 * MB  # in use from now on
    for _ in range(10_000):
        clock.now += 1
        vitals.look()
    assert len(trimmed) < 200, "what is in vain is tried ever more seldom"


async def test_what_was_in_use_at_one_attempt_is_given_back_at_a_later_one(clock: Clock) -> None:
    """A pause in the middle of a storm is no reason to keep for ever what the storm leaves behind."""
    held = 100 * MB
    in_use = 400 * MB
    attempts: list[float] = []

    def trim() -> bool:
        nonlocal held
        attempts.append(clock.now)
        held = in_use
        return True

    vitals = Vitals(clock=clock, memory=lambda: held, trim=trim)
    held = 600 * MB
    for _ in range(20):
        clock.now += 1
        vitals.look()
    assert vitals.memory == 400 * MB
    in_use = 105 * MB  # the storm is over: freed, and kept by the allocator
    for _ in range(60):
        clock.now += 1
        vitals.look()
    assert vitals.memory == 105 * MB
    count = len(attempts)
    for _ in range(600):
        clock.now += 1
        vitals.look()
    assert len(attempts) == count, "there is nothing to give back"


async def test_where_nobody_tells_the_memory_it_is_nothing(clock: Clock) -> None:
    vitals = Vitals(clock=clock, memory=lambda: None, trim=lambda: pytest.fail("nothing to give back"))
    vitals.look()
    assert vitals.memory == 0


def test_every_delay_is_told_to_whoever_measures() -> None:
    clock, heard = Clock(), list[float]()
    vitals = Vitals(clock=clock, measured=heard.append)
    vitals._over.set()  # it does not come again: there is no loop here
    for late in (0.0, 0.25):
        clock.now += TICK + late
        vitals.tick()
    assert heard == [pytest.approx(0.0), pytest.approx(0.25)]
