"""Hosted tools in the library: the same executors as in a gateway, carried out in this process."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from isthmus import Bridge, tool
from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.client.ask import DeadlinePassed
from isthmus.config.schema import Config, Search, Tools
from isthmus.ports.tools import Tell
from isthmus.testing import ScriptedTool, ScriptedUpstream, chat

SEARCH = {"type": "web_search"}
LOOK = ("call_a", "web_search", {"query": "otters"})


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def bridge_to(upstream: ScriptedUpstream, executor: ScriptedTool, **options: Any) -> Bridge:
    place = {"base_url": upstream.base_url, "api_key": "k"}
    return Bridge({"deepseek": {"default": place}}, executors=[executor], **options)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
def test_a_search_and_a_function_in_one_reply_are_both_answered(streamed: bool) -> None:
    executor = ScriptedTool("web_search", Ran("Otters are nice."), search="scripted")

    async def main() -> tuple[Any, list[Any]]:
        script = [chat(calls=[LOOK, ("call_b", "double", {"number": 21})]), chat(calls=[LOOK]), chat("Nice, and 42.")]
        with ScriptedUpstream.running(script) as upstream:
            async with bridge_to(upstream, executor) as bridge:
                run = await bridge.run("deepseek/m", "Go.", tools=[double], hosted=[SEARCH], stream=streamed)
            return run, [request.json for request in upstream.requests]

    run, sent = asyncio.run(main())
    assert (run.output, run.turns) == ("Nice, and 42.", 2)
    assert [result.value for result in run.tool_results] == [42]
    assert [tool["function"]["name"] for tool in sent[0]["tools"]] == ["double", "web_search"]
    told = [message["content"] for message in sent[1]["messages"] if message["role"] == "tool"]
    assert told == ["Otters are nice.", "42"]
    # What was sent before stands at the beginning of what is sent next: prompt caches go by that.
    prefixes = [msgspec.json.encode(body["messages"])[:-1] for body in sent]
    assert all(longer.startswith(shorter) for shorter, longer in pairwise(prefixes))
    assert executor.closed


def test_a_conversation_goes_on_with_what_was_found() -> None:
    executor = ScriptedTool("web_search", Ran("Otters are nice."), search="scripted")

    async def main() -> list[Any]:
        with ScriptedUpstream.running([chat(calls=[LOOK]), chat("Nice."), chat("Yes.")]) as upstream:
            async with bridge_to(upstream, executor) as bridge:
                first = await bridge.run("deepseek/m", "Go.", hosted=[SEARCH])
                await bridge.run("deepseek/m", [*first.messages, {"role": "user", "content": "Sure?"}], hosted=[SEARCH])
            return [request.json["messages"] for request in upstream.requests]

    _, second, third = asyncio.run(main())
    assert third[: len(second)] == second
    assert len(executor.calls) == 1


def test_the_configuration_bounds_them() -> None:
    executor = ScriptedTool("web_search", Ran("x" * 100), search="scripted")

    async def main() -> str:
        with ScriptedUpstream.running([chat(calls=[LOOK]), chat("Nice.")]) as upstream:
            async with bridge_to(upstream, executor, config=Config(tools=Tools(max_result=5))) as bridge:
                await bridge.chat("deepseek/m", "Go.", hosted=[SEARCH])
            return str(upstream.requests[1].json["messages"][-1]["content"])

    assert asyncio.run(main()).startswith("xxxxx\n[cut")


def test_without_an_executor_nobody_runs_it_and_that_is_said() -> None:
    async def main() -> tuple[Any, Any]:
        with ScriptedUpstream.running([chat("I cannot search.")]) as upstream:
            place = {"base_url": upstream.base_url, "api_key": "k"}
            async with Bridge({"deepseek": {"default": place}}) as bridge:
                return await bridge.chat("deepseek/m", "Go.", hosted=[SEARCH]), upstream.requests[0].json

    result, sent = asyncio.run(main())
    assert "tools" not in sent
    assert [(said["path"], said["action"]) for said in result.diagnostics] == [("tools[0]", "ignored")]


def test_a_deadline_stops_what_runs() -> None:
    async def wait(call: ManagedCall, tell: Tell) -> Ran:
        await asyncio.Event().wait()
        return Ran("never")

    executor = ScriptedTool("web_search", wait, search="scripted")

    async def main() -> None:
        with ScriptedUpstream.running([chat(calls=[LOOK])]) as upstream:
            async with bridge_to(upstream, executor) as bridge:
                with pytest.raises(DeadlinePassed):
                    await bridge.chat("deepseek/m", "Go.", hosted=[SEARCH], timeout=0.5)

    asyncio.run(main())
    assert (executor.stopped, executor.running) == (1, 0)


def test_the_search_engine_of_the_configuration_searches_for_the_library_too() -> None:
    async def main() -> tuple[Any, Any]:
        with ScriptedUpstream.running([chat(calls=[LOOK]), chat("Nice.")]) as upstream:
            place = {"base_url": upstream.base_url, "api_key": "k"}
            config = Config(search=Search(backend="demo"))
            async with Bridge({"deepseek": {"default": place}}, config=config) as bridge:
                run = await bridge.run("deepseek/m", "Go.", hosted=[SEARCH])
            return run, upstream.requests[1].json

    run, sent = asyncio.run(main())
    assert run.output == "Nice."
    assert "https://demo.example/wiki/otters" in sent["messages"][-1]["content"]
