"""The ways to answer a request, and that nothing of it outlives them."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from gateway.house import Upstream, asking, make_gateway
from isthmus.bridge.types.plan import Lesson
from isthmus.gateway.attempts import Attempts
from isthmus.gateway.caller import LOCAL
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.settings import Settings
from isthmus.store.memory import MemoryStore
from own_time import turns


class Words(str):
    """Text that can be watched."""


async def live(gateway: Gateway, upstream: Upstream) -> weakref.ref[Words]:
    """A request from its beginning to its end."""
    words = Words("so much")
    request = asking(store=False)
    request.body["metadata"] = {"words": words}
    run = await gateway.create(LOCAL, request)
    reading = asyncio.create_task(run.fold())
    await turns()
    upstream.asked[0].end("hello")
    assert (await reading)["status"] == "completed"
    upstream.asked.clear()
    return weakref.ref(words)


async def test_a_request_that_is_over_is_forgotten_at_once() -> None:
    upstream = Upstream()
    gateway = make_gateway(MemoryStore(), upstream, fallbacks={"one/m": ["two/m"]})
    gc.collect()
    gc.disable()
    try:
        watched = await live(gateway, upstream)
        await turns()
        assert watched() is None, "without the collector of garbage"
    finally:
        gc.enable()
        await gateway.aclose()


@pytest.mark.parametrize("strict", [None, False])
async def test_a_field_that_was_refused_is_left_out_of_the_next(strict: bool | None) -> None:
    upstream = Upstream()
    gateway = make_gateway(MemoryStore(), upstream)
    (candidate,) = await gateway._making.candidates(LOCAL, asking())
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    request = asking(tools=tools, tool_choice="required")
    attempts = Attempts(Settings(), LOCAL, request, [], strict, (), "resp_1", 1.0)
    first = attempts.make(candidate)
    assert first.plan.body["tool_choice"] == "required"
    assert first.without is not None
    again = first.without(Lesson("one", "m", "tool_choice", "required"))
    assert "tool_choice" not in again.plan.body
    assert [way.plan.target.provider for way in attempts.others([candidate])] == ["one"]
    await gateway.aclose()
