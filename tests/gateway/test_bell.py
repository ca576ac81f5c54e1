from __future__ import annotations

import asyncio

from isthmus.gateway.bell import Bell


async def waiting(bell: Bell, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(bell.wait()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_everybody_who_waits_is_woken_and_nobody_who_comes_later() -> None:
    bell = Bell()
    bell.ring()
    first = await waiting(bell, 3)
    assert not any(task.done() for task in first), "it rang before they came"
    bell.ring()
    await asyncio.wait(first)
    (late,) = await waiting(bell, 1)
    assert not late.done()
    bell.ring()
    await late


async def test_who_is_cut_off_is_forgotten_and_keeps_nobody_from_waking() -> None:
    bell = Bell()
    gone, there = await waiting(bell, 2)
    gone.cancel()
    await asyncio.wait([gone])
    assert len(bell._waiting) == 1
    bell.ring()
    await there


async def test_who_is_cut_off_just_as_it_rings_does_not_break_it() -> None:
    bell = Bell()
    gone, there = await waiting(bell, 2)
    gone.cancel()
    bell.ring()
    await there
    assert bell._waiting == []
