"""What all workers have counted together: nothing of it ever goes down."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from isthmus.observe.metrics.meters import Meters, Reading
from isthmus.server.census import PATIENCE, Census
from own_time import clock, run_in_own_time, turns

COUNTED = "isthmus_requests_total"
LABELS = ("responses", "main", "model", "completed")


def told(count: float, streams: float = 0.0) -> list[Reading]:
    meters = Meters()
    if count:
        meters.counter(COUNTED).add(LABELS, count)
        meters.histogram("isthmus_store_seconds").note(count, ("save",))
    meters.watch(lambda: [("isthmus_open_streams", (), streams), ("isthmus_loop_lag_worst_seconds", (), streams)])
    return meters.read()


def value(readings: list[Reading], name: str = COUNTED) -> float:
    return sum(number for each in readings if each.name == name for _, number in each.series)


async def test_all_that_answer_are_added_up() -> None:
    census = Census[str]()
    census.note("asker", told(1, 2))
    counts = {"two": told(10, 3), "three": told(100, 5)}
    found = await census.count(counts, lambda worker, number: census.note(worker, counts[worker], number))
    assert value(found.readings) == 111
    assert value(found.readings, "isthmus_open_streams") == 10
    assert value(found.readings, "isthmus_loop_lag_worst_seconds") == 5, "the worst of them"
    assert (found.answering, found.silent) == (3, 0)


def test_of_one_that_does_not_answer_counts_what_it_said_last() -> None:
    async def live() -> None:
        census = Census[str]()
        census.note("asker", told(1))
        census.note("stuck", told(10))
        counting = asyncio.create_task(census.count(["stuck"], lambda worker, number: None))
        joining = asyncio.create_task(census.count(["stuck"], lambda worker, number: None))
        await turns()
        assert not counting.done()
        clock().skip(PATIENCE + 0.1)
        found = await counting
        assert await joining is found, "who comes meanwhile has nobody asked again"
        assert value(found.readings) == 11
        assert (found.answering, found.silent) == (1, 1)

    run_in_own_time(live())


async def test_one_that_ends_while_it_is_asked_is_not_waited_for() -> None:
    census = Census[str]()
    census.note("asker", told(1))
    census.note("dying", told(10, 4))
    found = await census.count(["dying"], lambda worker, number: census.bury(worker))
    assert value(found.readings) == 11
    assert value(found.readings, "isthmus_open_streams") == 0, "what it held is gone"
    assert (found.answering, found.silent) == (1, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["count", "end"]), st.integers(1, 5)), max_size=40))
def test_no_counter_goes_down_whoever_dies(steps: list[tuple[str, str, int]]) -> None:
    asyncio.run(_live_through(steps))


async def _live_through(steps: list[tuple[str, str, int]]) -> None:
    census, own, before = Census[str](), dict.fromkeys("abc", 0), 0.0
    for worker, step, amount in steps:
        if step == "end":
            census.bury(worker)
            own[worker] = 0
        else:
            own[worker] += amount
            census.note(worker, told(own[worker]))
        found = await census.count([], lambda worker, number: None)
        assert value(found.readings) >= before
        before = value(found.readings)
    counted = sum(amount for _, step, amount in steps if step == "count")
    assert before == counted
