"""Large work goes aside, small work is done on the spot, and the loop turns meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from isthmus.conduct.aside import Aside


async def test_what_is_small_is_done_on_the_spot_and_what_is_heavy_beside_the_loop() -> None:
    aside = Aside()
    here = threading.get_ident()
    assert await aside.do(threading.get_ident, heavy=False) == here
    there = await aside.do(threading.get_ident, heavy=True)
    assert there != here
    assert await aside.do(threading.get_ident, heavy=True) == there, "there is one thread"
    aside.close()


async def test_the_loop_turns_while_something_heavy_is_worked_on() -> None:
    aside, turned = Aside(), threading.Event()
    asyncio.get_running_loop().call_later(0, turned.set)
    assert await aside.do(lambda: turned.wait(30), heavy=True), "the loop had its turn while this waited for it"
    aside.close()


async def test_what_rises_there_rises_here() -> None:
    aside = Aside()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await aside.do(fail, heavy=True)
    aside.close()


async def test_it_can_be_closed_at_any_time_and_used_again() -> None:
    aside = Aside()
    aside.close()
    assert await aside.do(lambda: 1, heavy=True) == 1
    aside.close()
    assert await aside.do(lambda: 2, heavy=True) == 2
    aside.close()


async def test_whoever_is_cancelled_waits_until_it_is_over() -> None:
    aside, begun, over = Aside(), threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        begun.set()
        over.wait(60)
        done.append("worked")
        raise ValueError("nobody hears this")

    async def ask() -> None:
        try:
            await aside.do(work, heavy=True)
        finally:
            done.append("left")

    asking = asyncio.create_task(ask())
    await asyncio.to_thread(begun.wait, 60)
    asking.cancel()
    await asyncio.sleep(0)
    asking.cancel()  # impatience changes nothing
    await asyncio.sleep(0)
    assert done == []
    over.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert done == ["worked", "left"]
    aside.close()


async def test_what_had_not_begun_is_not_begun_for_one_who_left() -> None:
    aside, over, done = Aside(), threading.Event(), list[int]()
    first = asyncio.create_task(aside.do(lambda: over.wait(60), heavy=True))
    second = asyncio.create_task(aside.do(lambda: done.append(2), heavy=True))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    over.set()
    await first
    assert await aside.do(lambda: 3, heavy=True) == 3
    assert done == []
    aside.close()


async def test_the_loop_gets_its_turns_sooner_meanwhile() -> None:
    aside, before = Aside(), sys.getswitchinterval()
    inside = await asyncio.gather(*(aside.do(sys.getswitchinterval, heavy=True) for _ in range(2)))
    assert max(inside) < before / 5
    assert sys.getswitchinterval() == before
    aside.close()


async def test_it_says_how_much_is_not_done_yet() -> None:
    aside, over = Aside(), threading.Event()
    asked = [asyncio.create_task(aside.do(lambda: over.wait(60), heavy=True)) for _ in range(3)]
    await asyncio.sleep(0)
    assert aside.waiting == 3
    over.set()
    await asyncio.gather(*asked)
    assert aside.waiting == 0
    aside.close()
