"""Waits that end: a deadline for one, a bound of silence for all pieces of a stream."""

from __future__ import annotations

import asyncio

import pytest
from tests.own_time import clock, run_in_own_time

from isthmus.upstream.clocks import Deadline, Silence


def test_a_wait_that_takes_too_long_is_ended_and_the_task_goes_on() -> None:
    async def main() -> None:
        waiting = asyncio.create_task(_wait(10))
        await _once()
        clock().skip(9)
        await _once()
        assert not waiting.done()
        clock().skip(2)
        assert await waiting == "too long"

    run_in_own_time(main())


def test_what_ends_in_time_leaves_no_timer_behind() -> None:
    async def main() -> None:
        with Deadline(10):
            await _once()
        clock().skip(11)
        await _once()

    run_in_own_time(main())


def test_a_cancellation_from_outside_stays_one() -> None:
    async def main() -> None:
        waiting = asyncio.create_task(_wait(10))
        await _once()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run_in_own_time(main())


def test_a_cancellation_that_comes_with_the_end_of_the_time_is_not_swallowed() -> None:
    async def main() -> None:
        waiting = asyncio.create_task(_wait(10))
        await _once()
        clock().skip(11)
        asyncio.get_running_loop().call_later(0, waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run_in_own_time(main())


def test_silence_is_counted_from_the_last_piece_not_from_the_first() -> None:
    rang: list[bool] = []

    async def main() -> None:
        silence = Silence(10, lambda: rang.append(True))
        for _ in range(3):
            silence.begin()
            clock().skip(6)
            await _once()
            silence.end()
        assert not rang, "18 seconds, but never 10 of them without a word"
        clock().skip(100)
        await _once()
        assert not rang, "nobody waits: the reader is slow, not who is read"
        silence.begin()
        clock().skip(9)
        await _once()
        assert not rang
        clock().skip(2)
        await _once()
        assert rang == [True]

    run_in_own_time(main())


def test_what_is_stopped_never_rings() -> None:
    rang: list[bool] = []

    async def main() -> None:
        silence = Silence(10, lambda: rang.append(True))
        silence.begin()
        silence.stop()
        clock().skip(100)
        await _once()

    run_in_own_time(main())
    assert not rang


async def _wait(seconds: float) -> str:
    try:
        with Deadline(seconds):
            await asyncio.get_running_loop().create_future()
    except TimeoutError:
        return "too long"
    return "in time"


async def _once() -> None:
    """Several turns of the loop: timers, then what they woke."""
    for _ in range(4):
        await asyncio.sleep(0)
