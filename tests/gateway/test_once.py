"""What is answered once: it ends itself, by its clock, by a shutdown, or with its client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.house import Heard
from isthmus.conduct.aside import Aside
from isthmus.conduct.life import Life
from isthmus.errors import IsthmusError, RequestRefused, UpstreamFailed
from isthmus.gateway.once import Once
from isthmus.gateway.runs import RunLimits, Runs
from isthmus.ports import Accepted, AttemptFailed, Ended, FirstToken, Sent
from isthmus.store.memory import MemoryStore
from isthmus.testing.fold import plan_for
from own_time import turns


class House:
    def __init__(self) -> None:
        self.heard = Heard()
        self.runs = Runs(MemoryStore(), "gw", RunLimits(), Aside())

    def once(self, ask: Callable[[], Awaitable[Any]], total: float | None = None) -> Once[Any, Any]:
        life = Life("x_1", "ann", lambda: 0.0, self.heard)
        return Once(
            "x_1",
            plan_for(),
            lambda trail: ask(),
            what="the thing",
            usage=lambda made: {"total_tokens": made},
            life=life,
            runs=self.runs,
            total_timeout=total,
        )


async def test_its_answer_and_its_life_are_told() -> None:
    house = House()

    async def ask() -> int:
        assert len(house.runs) == 1, "a shutdown would not wait for it"
        made.spoke()
        return 7

    made = house.once(ask)
    assert await made.answer() == 7
    assert [type(fact) for fact in house.heard.facts] == [Sent, FirstToken, Accepted, Ended]
    assert (made.ended().outcome, made.ended().usage) == ("completed", {"total_tokens": 7})
    assert len(house.runs) == 0


async def never() -> None:
    await asyncio.Event().wait()


async def test_it_has_its_time() -> None:
    made = House().once(never, total=0.01)
    with pytest.raises(UpstreamFailed, match="the thing took longer than allowed") as failed:
        await made.answer()
    assert failed.value.code == "upstream_timeout"


@pytest.mark.parametrize("early", [True, False], ids=["before it began", "while it waits"])
async def test_a_shutdown_is_told(early: bool) -> None:
    house = House()
    made = house.once(never)
    if early:
        made.stop("shutdown")
    waiting = asyncio.create_task(made.answer())
    if not early:
        await turns()
        house.runs.stop_all("shutdown")
    with pytest.raises(IsthmusError, match="shutting down"):
        await waiting
    assert made.ended().outcome == "refused"


async def test_a_client_that_leaves_cancels_it() -> None:
    house = House()
    made = house.once(never)
    waiting = asyncio.create_task(made.answer())
    await turns()
    made.stop("left")
    made.stop("shutdown")  # the first reason counts
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert made.ended().outcome == "cancelled"


async def test_a_failure_is_told_as_one() -> None:
    house = House()

    async def ask() -> None:
        raise RequestRefused("no")

    with pytest.raises(RequestRefused):
        await house.once(ask).answer()
    assert [type(fact) for fact in house.heard.facts] == [Sent, AttemptFailed, Ended]
