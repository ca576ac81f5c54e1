"""The crowd before one address: who is let in, who waits, who is sent away, and what the log hears of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from isthmus.log import Told
from isthmus.upstream.queue import Queue, QueueFull
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
    assert (places.free, len(places.waiting)) == (0, 0)
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
        ("upstream.queue.full", {**facts, "waiting": 1}),
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
