"""Promises kept, from the public API to the bytes on a socket and back: timeouts, cancellation, rates."""

from __future__ import annotations

import asyncio
import time

import pytest

from isthmus import Bridge, Limits, RateLimit, TextDelta, partial_result, tool
from isthmus.client.repair import find_problems
from isthmus.errors import (
    UpstreamTimedOut,
)
from isthmus.testing import HANG, ScriptedUpstream, chat, silence, stream
from isthmus.testing.replies import chat_chunks, event
from reaching import MODEL, WIRES, reach, same, scene
from speaking_responses import named_sse, native_events, native_items


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


THREE_TURNS = [
    scene("Let me see.", calls=[("call_a", "double", {"number": 21}), ("call_b", "shout", {"text": "hi"})]),
    scene(calls=[("call_c", "double", {"number": "4"})]),
    scene("42, HI and 8."),
]


# ── 5 ──────────────────────────────────────────────────────────────────────────────────────────────


HANGS = {
    "before the first byte": silence(),
    "in mid-stream": stream([event(chat_chunks("Hel")[0]), event(chat_chunks("Hel")[1]), HANG], done=False),
}


@pytest.mark.parametrize("where", HANGS)
def test_5_a_timeout_ends_the_run_in_time_and_closes_the_socket(where: str) -> None:
    async def main() -> None:
        async with reach("chat", [same(HANGS[where])]) as (bridge, upstream):
            began = time.monotonic()
            run = await bridge.run(MODEL, "Go.", limits=Limits(timeout=0.5))
            assert time.monotonic() - began < 0.8
            assert run.stop_reason == "timeout"
            await upstream.requests[0].closed.waited()

    asyncio.run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_5_a_timeout_of_one_call_is_an_error(wire: str) -> None:
    async def main() -> None:
        async with reach(wire, [same(silence())]) as (bridge, upstream):
            began = time.monotonic()
            with pytest.raises(UpstreamTimedOut):
                await bridge.chat(MODEL, "Go.", timeout=0.3)
            assert time.monotonic() - began < 0.6
            await upstream.requests[0].closed.waited()

    asyncio.run(main())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("where", HANGS)
def test_5_cancelling_the_task_takes_no_time_and_closes_the_socket(wire: str, where: str) -> None:
    hang = HANGS[where]
    if wire == "responses" and where == "in mid-stream":
        begun = native_events(native_items("Hello"))[:5]
        hang = stream([*named_sse(begun), HANG], done=False)

    async def main() -> None:
        async with reach(wire, [same(hang)]) as (bridge, upstream):
            task = asyncio.create_task(bridge.run(MODEL, "Go."))
            await upstream.received()
            began = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - began < 0.2
            await upstream.requests[0].closed.waited()

    asyncio.run(main())


def test_5_a_timeout_around_the_run_stays_a_timeout_and_keeps_what_was_done() -> None:
    async def main() -> None:
        async with reach("chat", [scene(calls=[("c", "double", {"number": 2})]), same(silence())]) as (bridge, _):
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(0.3):
                    await bridge.run(MODEL, "Go.", tools=[double])
            run = partial_result(caught.value)
            assert run is not None
            assert run.tool_results[0].value == 4
            assert find_problems(run.messages) == []

    asyncio.run(main())


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
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        async with reach("chat", [scene(calls=[("a", "stuck", {})])]) as (bridge, _):
            began = time.monotonic()
            run = await bridge.run(MODEL, "Go.", tools=[stuck], limits=Limits(timeout=0.3))
            assert time.monotonic() - began < 0.8
            assert (run.stop_reason, [one.status for one in run.tool_results]) == ("timeout", ["cancelled"])
            assert find_problems(run.messages) == []

    asyncio.run(main())


def test_5_a_budget_in_dollars_ends_the_run() -> None:
    async def main() -> None:
        answer = scene(calls=[("a", "double", {"number": 1})])
        async with reach("chat", [answer]) as (bridge, _):
            run = await bridge.run("openai/gpt-5", "Go.", tools=[double], limits=Limits(max_cost=0.00001))
            assert run.stop_reason == "budget"
            assert run.usage.cost == pytest.approx((10 * 1.25 + 5 * 10.0) / 1_000_000)

    asyncio.run(main())


# ── 8 ──────────────────────────────────────────────────────────────────────────────────────────────


def test_8_the_rate_limit_is_kept_to_within_a_tenth() -> None:
    async def main() -> None:
        rate, burst, calls = 25.0, 5, 30
        with ScriptedUpstream.running(default=chat("ok")) as upstream:
            place = {"openai": {"default": {"base_url": upstream.base_url, "api_key": "k", "dialect": "chat"}}}
            async with Bridge(place, rate_limit=RateLimit(rate, burst)) as bridge:
                await bridge.chat(MODEL, "warm up")
                await asyncio.sleep(burst / rate)
                began = time.monotonic()
                await asyncio.gather(*(bridge.chat(MODEL, f"{number}") for number in range(calls)))
                took = time.monotonic() - began
            expected = (calls - burst) / rate
            assert 0.9 * expected <= took <= 1.1 * expected + 0.1
            asked = [request.json["messages"][0]["content"] for request in upstream.requests[1:]]
            assert sorted(asked[burst:], key=int) == asked[burst:]  # first come, first served

    asyncio.run(main())
