"""What is told to end while a task reads it: interrupted only where it waits on the upstream."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.conduct.around import Stopped
from isthmus.conduct.stopping import Stoppable


class Ended:
    ended = False


class Reading(Stoppable):
    """Reads one future, and says how it went."""

    _turn: Any = Ended()
    finished = False

    async def read(self, upstream: asyncio.Future[str]) -> str:
        self._begin_reading()
        try:
            return await self._wait(upstream)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            return f"{self._stop}, cancelled {task.cancelling()} times"
        finally:
            self._end_reading()


async def begun(reading: Reading) -> tuple[asyncio.Task[str], asyncio.Future[str]]:
    upstream: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(reading.read(upstream))
    await asyncio.sleep(0)
    return task, upstream


def test_a_reader_that_waits_is_interrupted_and_goes_on_to_its_end() -> None:
    async def play() -> None:
        reading = Reading(None)
        task, _ = await begun(reading)
        reading.stop("shutdown")
        reading.stop("timeout")  # the first one counts
        assert await task == "shutdown, cancelled 0 times"

    asyncio.run(play())


def test_a_cancellation_from_outside_stays_one() -> None:
    async def play() -> None:
        reading = Reading(None)
        task, _ = await begun(reading)
        task.cancel()
        assert await task == "None, cancelled 1 times"

    asyncio.run(play())


def test_who_was_stopped_does_not_begin_to_wait() -> None:
    async def play() -> None:
        reading = Reading(None)
        reading.stop("left")
        with pytest.raises(Stopped):
            await reading.read(asyncio.get_running_loop().create_future())

    asyncio.run(play())


def test_all_of_it_has_its_time() -> None:
    async def play() -> None:
        reading = Reading(0.0)
        task, _ = await begun(reading)
        assert await task == "timeout, cancelled 0 times"
        assert reading._timer is None or reading._timer.cancelled()

    asyncio.run(play())


def test_only_a_reader_that_does_not_wait_is_cut_off() -> None:
    async def play() -> None:
        reading = Reading(None)
        task, upstream = await begun(reading)
        reading.abandon()
        assert not reading.abandoned, "`stop` reaches it"
        upstream.set_result("said")
        assert await task == "said"
        reading.abandon()
        assert not reading.abandoned, "nobody reads it"

    asyncio.run(play())
