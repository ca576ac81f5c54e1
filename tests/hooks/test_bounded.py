"""Somebody else's code is waited for so long, and no longer."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from isthmus.hooks.bounded import Bounded, TooSlow
from waiting import until_soon


async def test_plain_and_async_are_called_alike() -> None:
    async def waits(value: int) -> int:
        await asyncio.sleep(0)
        return value + 1

    bounded = Bounded(60, 1)
    assert await bounded.call(lambda value: value + 1, 1) == 2
    assert await bounded.call(waits, 1) == 2
    assert await bounded.call(lambda value: waits(value), 1) == 2  # plain, and gives back something to await


async def test_what_is_plain_runs_in_a_thread_of_its_own() -> None:
    assert await Bounded(60, 1).call(threading.current_thread) is not threading.current_thread()


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration(), KeyError()])
async def test_what_rises_is_raised(error: Exception) -> None:
    def raises() -> None:
        raise error

    with pytest.raises((ValueError, RuntimeError, KeyError)):
        await Bounded(60, 1).call(raises)


async def test_one_that_hangs_is_left_alone_and_keeps_its_place() -> None:
    go, bounded = threading.Event(), Bounded(0.05, 1)
    with pytest.raises(TooSlow):
        await bounded.call(go.wait)
    with pytest.raises(TooSlow):  # nobody else gets its place, and is told so in the same time
        await bounded.call(lambda: None)
    go.set()
    await until_soon(lambda: bounded._free == 1)
    assert await bounded.call(asyncio.sleep, 0) is None


async def test_one_that_will_not_be_cancelled_is_left_alone_too() -> None:
    go = asyncio.Event()

    async def stays() -> None:
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()

    bounded = Bounded(0.05, 2)
    with pytest.raises(TooSlow):
        await bounded.call(stays)
    assert bounded._free == 1
    go.set()
    await until_soon(lambda: not bounded._tasks)
    assert bounded._free == 2


async def test_places_are_given_on_in_their_order() -> None:
    go, bounded = asyncio.Event(), Bounded(60, 1)
    order: list[int] = []

    async def take(number: int) -> None:
        order.append(number)
        await go.wait()

    tasks = [asyncio.create_task(bounded.call(take, number)) for number in range(3)]
    await until_soon(lambda: bool(order))
    tasks[1].cancel()  # who waits may leave
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2]
    await until_soon(lambda: not bounded._tasks)
    assert bounded._free == 1


async def test_whoever_asked_is_gone_and_so_is_the_call() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hangs() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = asyncio.create_task(Bounded(60, 1).call(hangs))
    await begun.wait()
    call.cancel()
    async with asyncio.timeout(60):
        await ended.wait()
