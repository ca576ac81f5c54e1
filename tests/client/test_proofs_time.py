"""Promises kept, from the public API to the bytes on a socket and back: timeouts, cancellation, rates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from isthmus import Bridge, Limits, RateLimit, TextDelta, partial_result, tool
from isthmus.client.repair import find_problems
from isthmus.errors import (
    UpstreamTimedOut,
)
from isthmus.testing import HANG, ScriptedUpstream, chat, silence, stream
from isthmus.testing.replies import chat_chunks, event
from own_time import clock, run_in_own_time, turns
from reaching import MODEL, WIRES, double, reach, same, scene
from speaking_responses import named_sse, native_events, native_items

# ── 5 ──────────────────────────────────────────────────────────────────────────────────────────────


HANGS = {
    "before the first byte": silence(),
    "in mid-stream": stream([event(chat_chunks("Hel")[0]), event(chat_chunks("Hel")[1]), HANG], done=False),
}


def heard_of(where: str) -> tuple[Callable[[object], None], asyncio.Event]:
    """What listens to a run, and what it sets when the run has come to where the upstream hangs."""
    reached = asyncio.Event()

    def listen(one: object) -> None:
        if isinstance(one, TextDelta):
            reached.set()

    if where != "in mid-stream":
        reached.set()
    return listen, reached


@pytest.mark.parametrize("where", HANGS)
def test_5_a_timeout_ends_the_run_in_time_and_closes_the_socket(where: str) -> None:
    async def main() -> None:
        async with reach("chat", [same(HANGS[where])]) as (bridge, upstream):
            listen, reached = heard_of(where)
            limits = Limits(timeout=200)
            task = asyncio.create_task(bridge.run(MODEL, "Go.", limits=limits, stream=True, on_event=listen))
            await upstream.received()
            await reached.wait()
            clock().stop_clock()
            clock().skip(100)
            await turns()
            assert not task.done()
            clock().skip(100)
            run = await task
            assert run.stop_reason == "timeout"
            await upstream.requests[0].closed.waited()

    run_in_own_time(main())


@pytest.mark.parametrize("wire", WIRES)
def test_5_a_timeout_of_one_call_is_an_error(wire: str) -> None:
    async def main() -> None:
        async with reach(wire, [same(silence())]) as (bridge, upstream):
            task = asyncio.create_task(bridge.chat(MODEL, "Go.", timeout=200))
            await upstream.received()
            clock().stop_clock()
            clock().skip(100)
            await turns()
            assert not task.done()
            clock().skip(100)
            with pytest.raises(UpstreamTimedOut):
                await task
            await upstream.requests[0].closed.waited()

    run_in_own_time(main())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("where", HANGS)
def test_5_cancelling_the_task_takes_no_time_and_closes_the_socket(wire: str, where: str) -> None:
    hang = HANGS[where]
    if wire == "responses" and where == "in mid-stream":
        begun = native_events(native_items("Hello"))[:5]
        hang = stream([*named_sse(begun), HANG], done=False)

    async def main() -> None:
        async with reach(wire, [same(hang)]) as (bridge, upstream):
            listen, reached = heard_of(where)
            task = asyncio.create_task(bridge.run(MODEL, "Go.", stream=True, on_event=listen))
            await upstream.received()
            await reached.wait()
            clock().stop_clock()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await upstream.requests[0].closed.waited()

    run_in_own_time(main())


def test_5_a_timeout_around_the_run_stays_a_timeout_and_keeps_what_was_done() -> None:
    async def main() -> None:
        script = [scene(calls=[("c", "double", {"number": 2})]), same(silence())]
        async with reach("chat", script) as (bridge, upstream):

            async def skip() -> None:
                await upstream.received(2)
                clock().skip(200)

            skipping = asyncio.create_task(skip())
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(200):
                    await bridge.run(MODEL, "Go.", tools=[double])
            await skipping
            run = partial_result(caught.value)
            assert run is not None
            assert run.tool_results[0].value == 4
            assert find_problems(run.messages) == []

    run_in_own_time(main())


def test_5_leaving_the_stream_early_closes_the_socket() -> None:
    async def main() -> None:
        async with reach("chat", [same(HANGS["in mid-stream"])]) as (bridge, upstream):
            async with bridge.run_stream(MODEL, "Go.") as events:
                async for one in events:
                    if isinstance(one, TextDelta):
                        break
            assert events.result.stop_reason == "cancelled"
            await upstream.requests[0].closed.waited()

    asyncio.run(main())


def test_5_a_timeout_while_tools_run_answers_every_call_and_keeps_the_history_valid() -> None:
    @tool
    async def stuck() -> str:
        """Never end."""
        clock().skip(200)
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        async with reach("chat", [scene(calls=[("a", "stuck", {})])]) as (bridge, _):
            run = await bridge.run(MODEL, "Go.", tools=[stuck], limits=Limits(timeout=200))
            assert (run.stop_reason, [one.status for one in run.tool_results]) == ("timeout", ["cancelled"])
            assert find_problems(run.messages) == []

    run_in_own_time(main())


def test_5_a_budget_in_dollars_ends_the_run() -> None:
    async def main() -> None:
        answer = scene(calls=[("a", "double", {"number": 1})])
        async with reach("chat", [answer]) as (bridge, _):
            run = await bridge.run("openai/gpt-5", "Go.", tools=[double], limits=Limits(max_cost=0.00001))
            assert run.stop_reason == "budget"
            assert run.usage.cost == pytest.approx((10 * 1.25 + 5 * 10.0) / 1_000_000)

    asyncio.run(main())


# ── 8 ──────────────────────────────────────────────────────────────────────────────────────────────


def test_8_the_rate_limit_is_kept_to_the_call() -> None:
    async def main() -> None:
        rate, burst, calls = 32.0, 5, 30  # a 32nd of a second is a whole number to a computer
        with ScriptedUpstream.running(default=chat("ok")) as upstream:
            place = {"openai": {"default": {"base_url": upstream.base_url, "api_key": "k", "dialect": "chat"}}}
            async with Bridge(place, rate_limit=RateLimit(rate, burst)) as bridge:
                clock().stop_clock()
                tasks = [asyncio.create_task(bridge.chat(MODEL, f"{number}")) for number in range(calls)]
                for sent in range(burst, calls):
                    await upstream.received(sent)
                    await asyncio.gather(*tasks[:sent])  # the answers are here, and nothing more was asked
                    await turns()
                    assert len(upstream.requests) == sent
                    clock().skip(1 / rate)
                await asyncio.gather(*tasks)
            asked = [request.json["messages"][0]["content"] for request in upstream.requests]
            assert sorted(asked[burst:], key=int) == asked[burst:]  # first come, first served

    run_in_own_time(main())
