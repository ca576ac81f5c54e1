"""The crowd before one address: who is let in, who waits, who is sent away, and what the log hears of it."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.log import Told
from isthmus.upstream.queue import Places, Queue, QueueFull
from own_time import clock, run_in_own_time, turns

LONG = 600.0


async def test_who_comes_first_is_let_in_without_a_wait() -> None:
    queue = Queue("main", 2, 0, LONG)
    places = await queue.take()
    assert queue.length == 0
    await queue.take()
    assert queue.length == 1
    places.release()
    assert queue.length == 0


async def test_who_waits_is_let_in_in_turn() -> None:
    queue = Queue("main", 1, 5, LONG)
    places = await queue.take()
    order: list[int] = []

    async def wait(number: int) -> None:
        mine = await queue.take()
        order.append(number)
        mine.release()

    waiting = [asyncio.create_task(wait(number)) for number in range(3)]
    await turns()
    assert (order, queue.length) == ([], 4)
    places.release()
    await asyncio.gather(*waiting)
    assert (order, queue.length) == ([0, 1, 2], 0)


async def test_behind_a_full_queue_nobody_waits() -> None:
    queue = Queue("main", 1, 1, LONG)
    places = await queue.take()
    waiting = asyncio.create_task(queue.take())
    await turns()
    with pytest.raises(QueueFull):
        await queue.take()
    places.release()
    (await waiting).release()
    (await queue.take()).release()


async def test_any_number_may_wait_where_there_is_no_limit() -> None:
    queue = Queue("main", 1, None, LONG)
    places = await queue.take()
    waiting = [asyncio.create_task(queue.take()) for _ in range(500)]
    await turns()
    assert queue.length == 501
    places.release()
    for each in waiting:
        (await each).release()


def test_who_waited_in_vain_leaves_the_queue() -> None:
    async def main() -> None:
        clock().stop_clock()
        queue = Queue("main", 1, 1, LONG)
        await queue.take()
        waiting = asyncio.create_task(queue.take())
        await turns()
        clock().skip(LONG + 1)
        with pytest.raises(TimeoutError):
            await waiting
        assert queue.length == 1

    run_in_own_time(main())


async def test_who_is_called_away_leaves_the_queue() -> None:
    queue = Queue("main", 1, 1, LONG)
    places = await queue.take()
    waiting = asyncio.create_task(queue.take())
    await turns()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert queue.length == 1
    places.release()
    assert queue.length == 0


async def test_a_place_passes_by_who_is_called_away_in_the_same_moment() -> None:
    queue = Queue("main", 1, None, 60.0)
    held = await queue.take()
    first, second = (asyncio.create_task(queue.take()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()  # it has not run since: it stands in the queue still
    held.release()
    places = await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (places.free, places.waiting) == (0, 0)
    places.release()
    assert places.free == 1


def test_it_outlives_the_loop_that_it_was_used_in() -> None:
    queue = Queue("main", 1, 1, LONG)

    async def crowd() -> None:
        await queue.take()
        waiting = asyncio.create_task(queue.take())
        await turns()
        waiting.cancel()

    async def alone() -> None:
        (await queue.take()).release()

    asyncio.run(crowd())
    queue.reset()
    asyncio.run(alone())
    assert queue.length == 0


async def test_a_crowd_is_told_once_and_again_when_it_forms_anew(caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue("main", 1, 1, LONG)

    async def crowd() -> None:
        places = await queue.take()
        waiting = asyncio.create_task(queue.take())
        await turns()
        for _ in range(3):
            with pytest.raises(QueueFull):
                await queue.take()
        places.release()
        (await waiting).release()

    with caplog.at_level(logging.WARNING, "isthmus.upstream"):
        await crowd()
        first = told(caplog)
        await crowd()
    facts = {"provider": "main", "max_connections": 1, "max_queued": 1}
    assert first == [
        ("upstream.full", {**facts, "waiting": 0}),
        ("upstream.queue.full", {**facts, "waiting": 1, "why": "full"}),
    ]
    assert told(caplog) == first * 2


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    said = [record.msg for record in caplog.records]
    return [(each.event, each.facts) for each in said if isinstance(each, Told)]


async def test_it_says_how_many_are_under_way_and_how_many_wait() -> None:
    queue = Queue("main", 2, 5, 60.0)
    taken = [await queue.take(), await queue.take()]
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert (queue.taken, queue.waiting) == (2, 1)
    taken[0].release()
    await waiting
    assert (queue.taken, queue.waiting) == (2, 0)
    for places in taken:
        places.release()
    assert (queue.taken, queue.waiting) == (0, 0)


# ── owners ─────────────────────────────────────────────────────────────────────────────────────────


def _crowd(queue: Queue, order: list[str], *owners: str) -> list[asyncio.Task[None]]:
    """Requests that wait in this order, note when they are served, and go at once."""

    async def wait(owner: str) -> None:
        places = await queue.take(owner)
        order.append(owner)
        places.release()

    return [asyncio.create_task(wait(owner)) for owner in owners]


async def test_owners_are_served_in_turn_however_many_of_theirs_wait() -> None:
    queue, order = Queue("main", 1, None, LONG), list[str]()
    places = await queue.take("noisy")
    waiting = _crowd(queue, order, *["noisy"] * 500, "ann", "bob", "ann")
    await turns()
    places.release()
    await asyncio.gather(*waiting)
    assert order[:6] == ["noisy", "ann", "bob", "noisy", "ann", "noisy"]
    assert len(order) == 503


async def test_who_comes_back_stands_behind_those_who_waited_meanwhile() -> None:
    queue, order = Queue("main", 1, None, LONG), list[str]()
    places = await queue.take()
    waiting = _crowd(queue, order, "ann", "bob", "cid")
    await turns()
    waiting[0].cancel()
    await turns()
    waiting += _crowd(queue, order, "ann")
    await turns()
    places.release()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert order == ["bob", "cid", "ann"]


async def test_only_so_many_of_one_owner_wait() -> None:
    queue, order = Queue("main", 1, 10, LONG, most_own=2), list[str]()
    places = await queue.take("ann")
    waiting = _crowd(queue, order, "ann", "ann", "bob")
    await turns()
    with pytest.raises(QueueFull) as refused:
        await queue.take("ann")
    assert refused.value.why == "own"
    waiting += _crowd(queue, order, "bob")
    await turns()
    places.release()
    await asyncio.gather(*waiting)
    assert sorted(order) == ["ann", "ann", "bob", "bob"]


async def test_in_a_full_queue_who_has_the_most_waiting_gives_way_to_who_has_fewer() -> None:
    queue, order = Queue("main", 1, 4, LONG), list[str]()
    places = await queue.take("noisy")
    noisy = _crowd(queue, order, *["noisy"] * 4)
    await turns()
    others = _crowd(queue, order, "ann", "ann")
    await turns()
    assert [str(task.exception()) for task in noisy if task.done()] == ["displaced"] * 2
    assert [task.done() for task in noisy] == [False, False, True, True]
    with pytest.raises(QueueFull) as refused:  # they have as many by now: nobody gives way to their third
        await queue.take("ann")
    assert (refused.value.why, queue.waiting) == ("full", 4)
    places.release()
    await asyncio.gather(*noisy[:2], *others)
    assert order == ["noisy", "ann", "noisy", "ann"]


async def test_a_displaced_request_that_is_called_away_in_the_same_moment_leaves_nothing_behind() -> None:
    queue = Queue("main", 1, 2, LONG)
    places = await queue.take("noisy")
    noisy = [asyncio.create_task(queue.take("noisy")) for _ in range(2)]
    await turns()
    ann = asyncio.create_task(queue.take("ann"))
    await asyncio.sleep(0)  # the last one was told to go, and has not gone
    noisy[1].cancel()
    await turns()
    assert (noisy[1].cancelled(), queue.waiting) == (True, 2)
    places.release()
    (await noisy[0]).release()
    (await ann).release()
    assert (queue.taken, queue.waiting) == (0, 0)


def test_who_would_wait_too_long_is_told_so_at_once() -> None:
    async def main() -> None:
        clock().stop_clock()
        queue, order = Queue("main", 1, None, 10.0), list[str]()
        held = [await queue.take("noisy")]

        async def hold(owner: str) -> None:
            held.append(await queue.take(owner))
            order.append(owner)

        waiting = [asyncio.create_task(hold("noisy")) for _ in range(6)]
        await turns()
        for _ in range(3):  # one every two seconds
            clock().skip(2.0)
            held.pop().release()
            await turns()
        assert len(order) == 3
        waiting += [asyncio.create_task(hold("noisy")) for _ in range(2)]  # behind three others: in eight, ten seconds
        await turns()
        assert queue.waiting == 5
        with pytest.raises(QueueFull) as refused:
            await queue.take("noisy")
        assert (refused.value.why, refused.value.wait) == ("slow", 12.0)
        other = asyncio.create_task(hold("ann"))  # whose turn comes in two rounds
        await turns()
        assert queue.waiting == 6
        for task in (*waiting, other):
            task.cancel()
        await turns()

    run_in_own_time(main())


def test_a_new_crowd_has_a_pace_of_its_own() -> None:
    async def main() -> None:
        clock().stop_clock()
        queue = Queue("main", 1, None, 10.0)
        held = await queue.take()
        for _ in range(5):
            waiting = asyncio.create_task(queue.take())
            await turns()
            clock().skip(9.0)
            held.release()
            held = await waiting
        waiting = asyncio.create_task(queue.take())
        await turns()
        second = asyncio.create_task(queue.take())  # at nine seconds each, it would be too late
        await turns()
        assert queue.waiting == 2
        for task in (waiting, second):
            task.cancel()
        await turns()

    run_in_own_time(main())


async def test_ten_thousand_owners_cost_what_two_do() -> None:
    """Counted, not timed: what one more request, and its being served, asks of the tables."""

    async def calls(owners: int) -> int:
        queue, order = Queue("main", 1, None, LONG), list[str]()
        places = await queue.take()
        waiting = _crowd(queue, order, *[f"key_{number}" for number in range(owners)] * 2)
        await turns()
        inner, counted = queue._places, 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            inner.release()
            inner.make_room("somebody else")
            inner.foresee("somebody else")
        finally:
            sys.setprofile(None)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        places.free += 1
        return counted

    assert await calls(10_000) == await calls(2)


OWNERS = st.sampled_from(["ann", "bob", "cid", "noisy"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), OWNERS),
        st.tuples(st.just("release"), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 50)),
        st.tuples(st.just("pause"), st.just(0)),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 3), st.sampled_from([None, 0, 1, 4]), st.sampled_from([None, 1, 3]))
def test_no_place_is_lost_and_none_is_invented_whatever_happens(
    steps: list[tuple[str, Any]], most: int, waiting: int | None, own: int | None
) -> None:
    async def main() -> None:
        queue = Queue("main", most, waiting, LONG, own)
        asked: list[asyncio.Task[Places]] = []
        held: list[Places] = []

        def settle() -> None:
            for task in [each for each in asked if each.done()]:
                asked.remove(task)
                if not task.cancelled() and task.exception() is None:
                    held.append(task.result())

        for step, what in steps:
            if step == "ask":
                asked.append(asyncio.create_task(queue.take(what)))
            elif step == "release" and held:
                held.pop(what % len(held)).release()
            elif step == "cancel" and asked:
                asked[what % len(asked)].cancel()
            else:
                await turns()
            settle()
            assert len(held) <= most
            assert waiting is None or queue.waiting <= waiting
        await turns()
        settle()
        assert queue.taken == len(held)
        assert queue.waiting == len(asked)
        assert not asked or queue.taken == most  # nobody waits beside a free place
        while held or asked:
            for places in held:
                places.release()
            held.clear()
            await turns()
            settle()
        assert (queue.taken, queue.waiting) == (0, 0)

    asyncio.run(main())


@given(st.lists(OWNERS, min_size=1, max_size=60), st.integers(1, 3))
def test_nobody_is_served_twice_while_somebody_else_waits_for_their_turn(crowd: list[str], most: int) -> None:
    async def main() -> None:
        queue, order = Queue("main", most, None, LONG), list[str]()
        held = [await queue.take() for _ in range(most)]
        waiting = _crowd(queue, order, *crowd)
        await turns()
        for places in held:
            places.release()
        await asyncio.gather(*waiting)
        left = {owner: crowd.count(owner) for owner in crowd}
        since: dict[str, set[str]] = {owner: set() for owner in left}
        """Whom each still waiting owner has seen served since their own last turn."""
        for owner in order:
            left[owner] -= 1
            for other in left:
                if other != owner and left[other]:
                    assert owner not in since[other], f"{owner} twice before {other}"
                    since[other].add(owner)
            since[owner] = set()
        assert not any(left.values())

    asyncio.run(main())
