from __future__ import annotations

import asyncio

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.upstream.codex.failures import CodexGone
from isthmus.upstream.codex.rpc import Notification
from isthmus.upstream.codex.turns import TurnQueue


def _note(name: str) -> Notification:
    return Notification(name)


def test_messages_before_the_first_reader_are_held_in_order() -> None:
    async def check() -> None:
        queue = TurnQueue(10)
        queue.put(_note("a"))
        queue.put(_note("b"))
        assert [await queue.get(), await queue.get()] == [_note("a"), _note("b")]

    asyncio.run(check())


def test_a_waiting_reader_wakes_up() -> None:
    async def check() -> None:
        queue = TurnQueue(10)
        reader = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.put(_note("a"))
        assert await reader == _note("a")

    asyncio.run(check())


def test_a_failure_comes_after_what_was_delivered_and_the_first_one_stays() -> None:
    async def check() -> None:
        queue = TurnQueue(10)
        queue.put(_note("a"))
        queue.fail(CodexGone("first"))
        queue.fail(CodexGone("second"))
        queue.put(_note("late"))
        assert await queue.get() == _note("a")
        for _ in range(2):
            with pytest.raises(CodexGone, match="first"):
                await queue.get()

    asyncio.run(check())


def test_a_reader_that_falls_behind_loses_its_turn_and_no_memory() -> None:
    async def check() -> None:
        queue = TurnQueue(2)
        for _ in range(5):
            queue.put(_note("x"))
        with pytest.raises(UpstreamFailed, match="2 messages behind"):
            await queue.get()

    asyncio.run(check())
