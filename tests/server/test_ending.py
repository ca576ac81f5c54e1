"""How long the end waits, and for whom."""

from __future__ import annotations

import asyncio
from typing import Any

from isthmus.config.schema import Server
from isthmus.server.ending import end
from isthmus.server.signals import Ending
from own_time import clock, run_in_own_time, turns

SETTINGS = Server(grace=30, reload_grace=3600)


class Gateway:
    """Something runs there until it is told that the time is over."""

    def __init__(self) -> None:
        self.runs = [1]
        self.graces: list[float] = []

    async def drain(self, grace: float, *, last_words: float = 2.0) -> None:
        self.graces.append(grace)
        await asyncio.sleep(grace)


def ended_after(ending: Ending, *steps: tuple[float, str]) -> tuple[list[float], float]:
    """The patience it had, and the seconds that it took, when these events came after so many seconds."""
    gateway: Any = Gateway()

    async def live() -> float:
        began = clock().time()
        task = asyncio.create_task(end(gateway, SETTINGS, None, ending))
        await turns()
        for seconds, event in steps:
            clock().skip(seconds)
            await turns()
            getattr(ending, event).set()
            await turns()
        while not task.done():
            clock().skip(5)
            await turns()
        return clock().time() - began

    took: list[float] = []

    async def measure() -> None:
        took.append(await live())

    run_in_own_time(measure())
    return gateway.graces, took[0]


def test_the_grace_period_counts_where_the_end_was_asked_for() -> None:
    ending = Ending()
    ending.stop.set()
    ending.called.set()
    graces, took = ended_after(ending)
    assert graces == [30]
    assert 30 <= took < 60


def test_one_that_was_replaced_takes_as_long_as_after_a_reload() -> None:
    ending = Ending()
    ending.stop.set()
    graces, took = ended_after(ending)
    assert graces == [3600]
    assert 3600 <= took < 3660


def test_and_the_ordinary_time_from_when_the_end_is_asked_for_after_all() -> None:
    ending = Ending()
    ending.stop.set()
    graces, took = ended_after(ending, (100, "called"))
    assert graces == [3600, 0], "then what runs is ended, with its terminal event"
    assert 130 <= took < 160


def test_a_second_word_ends_it_at_once() -> None:
    ending = Ending()
    ending.stop.set()
    ending.called.set()
    graces, took = ended_after(ending, (1, "hurry"))
    assert graces == [30, 0]
    assert took < 30
