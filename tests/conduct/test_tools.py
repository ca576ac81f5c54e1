"""Calls carried out: side by side within their bounds, one end each, stopped when nobody listens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from isthmus.bridge.types.managed import ManagedCall, Ran, ToolLimits
from isthmus.conduct.tools import _MAX_STEPS, Began, Ended, Fact, Step, Work
from isthmus.ports.tools import Tell
from own_time import OwnTime


def call(number: int = 0) -> ManagedCall:
    return ManagedCall(f"ws_{number}", "web_search", "web_search", {"query": "a"}, {})


class Runner:
    def __init__(self, act: Callable[[ManagedCall, Tell], Awaitable[Ran]]) -> None:
        self._act = act

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        return await self._act(call, tell)


def work(act: Callable[[ManagedCall, Tell], Awaitable[Ran]], *calls: ManagedCall, **limits: Any) -> Work:
    return Work(calls, lambda kind: Runner(act), ToolLimits(**limits))


async def all_of(work: Work) -> list[Fact]:
    facts: list[Fact] = []
    async with work:
        while news := await work.news():
            facts += news
    return facts


async def test_each_call_begins_tells_of_itself_and_ends() -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        tell("searching", {"n": 1})
        return Ran("found")

    began, step, ended = await all_of(work(act, call()))
    assert [began, step] == [Began("ws_0"), Step("ws_0", "searching", {"n": 1})]
    assert isinstance(ended, Ended)
    assert (ended.call, ended.ran) == (call(), Ran("found"))
    assert ended.seconds >= 0


async def test_the_log_tells_of_each_call_and_not_what_it_asked(caplog: pytest.LogCaptureFixture) -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        return Ran("found", failed=True)

    with caplog.at_level("INFO"):
        await all_of(work(act, ManagedCall("mcp_1", "mcp", "ask", {"q": "secret words"}, {"authorization": "sk-1"})))
    (record,) = caplog.records
    assert (record.levelname, record.getMessage().split()[0]) == ("WARNING", "tool.ended")
    assert "mcp_1" in record.getMessage()
    assert "secret" not in record.getMessage()
    assert "sk-1" not in record.getMessage()


async def test_no_calls_are_over_at_once() -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        raise AssertionError

    assert await all_of(work(act)) == []


async def test_a_bug_of_a_runner_is_a_result_that_does_not_show_it() -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        raise ValueError("sk-secret")

    _, ended = await all_of(work(act, call()))
    assert isinstance(ended, Ended)
    assert ended.ran is not None
    assert ended.ran.failed
    assert "sk-secret" not in str(ended)


async def test_progress_that_nobody_reads_is_bounded_and_the_end_is_not_lost() -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        for number in range(10 * _MAX_STEPS):
            tell("partial_image", {"n": number})
        return Ran("made")

    facts = await all_of(work(act, call()))
    assert len(facts) == _MAX_STEPS + 1
    assert isinstance(facts[-1], Ended)


async def test_so_many_run_at_the_same_time() -> None:
    running = most = 0

    async def act(call: ManagedCall, tell: Tell) -> Ran:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Ran("x")

    facts = await all_of(work(act, *map(call, range(7)), parallel=3))
    assert most == 3
    assert sum(isinstance(fact, Ended) for fact in facts) == 7


async def test_leaving_stops_what_runs_and_what_waits() -> None:
    stopped: list[str] = []
    begun = asyncio.Event()

    async def act(call: ManagedCall, tell: Tell) -> Ran:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(call.id)
            raise
        return Ran("x")

    async with work(act, call(0), call(1), parallel=1) as under_way:
        await begun.wait()
        assert await under_way.news() == [Began("ws_0")]
    assert stopped == ["ws_0"]
    assert [(fact.call.id, fact.ran) for fact in under_way.untold()] == [("ws_0", None)]


def test_a_call_that_takes_too_long_has_failed() -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        await asyncio.Event().wait()
        return Ran("x")

    async def scene() -> list[Fact]:
        return await all_of(work(act, call(), timeout=30.0))

    time = OwnTime()
    try:
        task = time.launch(scene())
        time.flow(29)
        assert not task.done()
        time.flow(2)
        _, ended = task.result()
    finally:
        time.close()
    assert isinstance(ended, Ended)
    assert ended.ran is not None
    assert "30 seconds" in str(ended.ran.output)


@pytest.mark.parametrize("kind", ["web_search", "mcp", "image_generation"])
async def test_a_failed_item_says_why_in_the_manner_of_its_kind(kind: Any) -> None:
    async def act(call: ManagedCall, tell: Tell) -> Ran:
        raise ValueError

    _, ended = await all_of(work(act, ManagedCall("x_1", kind, kind, {}, {})))
    assert isinstance(ended, Ended)
    assert ended.ran is not None
    assert bool(ended.ran.fields.get("error")) is (kind != "web_search")
