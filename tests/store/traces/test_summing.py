"""A time as a few steps of all sizes: exactly that time, and never many steps."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.ports.traces import TraceFilter
from isthmus.store.traces.schema import SLOTS
from isthmus.store.traces.sqlite import SqliteTraces
from isthmus.store.traces.summing import parts
from traced import keep_in, traced


@given(st.integers(0, 5_000), st.integers(0, 5_000))
def test_the_parts_of_a_time_are_that_time(low: int, high: int) -> None:
    covered: list[int] = []
    for level, first, last in parts(low, high):
        many = SLOTS[level] // SLOTS[0]
        covered += range(first * many, last * many)
    assert covered == list(range(low, high))


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_however_long_it_is_few_steps_are_at_its_ends(low: int, high: int) -> None:
    small = sum(last - first for level, first, last in parts(low, high) if level < 2)
    assert small <= 2 * (23 + 11)


@settings(max_examples=40, deadline=None)
@given(
    ended=st.lists(st.integers(0, 86_400 * 3), max_size=30),
    since=st.integers(0, 86_400 * 3).map(lambda at: at // 300 * 300),
    length=st.integers(0, 86_400 * 3).map(lambda at: at // 300 * 300),
)
def test_sums_over_any_time_are_those_of_what_ended_in_it(ended: list[int], since: int, length: int) -> None:
    asyncio.run(sums_are_right(ended, since, length))


async def sums_are_right(ended: list[int], since: int, length: int) -> None:
    store = SqliteTraces()
    for number, at in enumerate(sorted(ended)):
        keep_in(store, [traced(str(number), float(at), key=f"k{number % 3}")])
    wanted = TraceFilter(since=float(since), until=float(since + length))
    within = [at for at in ended if since <= at < since + length]
    assert sum(each.requests for each in await store.totals("local", wanted)) == len(within)
    assert sum(each.requests for each in await store.totals("local", wanted, by="key")) == len(within)
    by_time = await store.totals("local", wanted, by="time", step=300)
    assert {int(each.group): each.requests for each in by_time} == {
        slot * 300: sum(at // 300 == slot for at in within) for slot in {at // 300 for at in within}
    }
    counted = [sum(count for _, count in each.total.steps) for each in await store.totals("local", wanted)]
    assert counted == ([len(within)] if within else [])
    store.close()


async def test_of_very_many_steps_only_the_sums_are_told() -> None:
    store = SqliteTraces()
    keep_in(store, [traced(str(number), 300.0 * number) for number in range(101)])
    told = await store.totals("local", by="time", step=300)
    assert [each.requests for each in told] == [1] * 101
    assert {each.total.steps for each in told} == {()}
    few = await store.totals("local", TraceFilter(since=300.0), by="time", step=300)
    assert [each.total.percentile(0.5) is not None for each in few] == [True] * 100
    store.close()
