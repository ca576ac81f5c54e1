"""The normative loop, step by step, with a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acting import call, double, explode, with_model
from isthmus import (
    Bridge,
    HistoryRepaired,
    Limits,
    Message,
    RunFinished,
    StopRun,
    Tool,
    ToolCall,
    ToolContext,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    assistant,
    system,
    tool,
    user,
)
from isthmus.client.repair import find_problems
from isthmus.errors import RequestRefused
from isthmus.testing import ExecutionTracker, ScriptedModel, say


def test_chat_executes_nothing_and_execute_gives_results_in_call_order() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        reply = await bridge.chat("any", "Go.", tools=[double])
        assert (reply.finish_reason, len(model.requests)) == ("tool_calls", 1)
        results = await bridge.execute(reply.message, tools=[double])
        assert [(one.call_id, one.value) for one in results] == [("b", 4), ("a", 2)]

    with_model([say(calls=[call("b", number=2), call("a", number=1)])], scenario)


def test_execute_takes_any_form_of_calls() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        raw = {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "double", "arguments": '{"number":2}'}}],
        }
        for given in (
            raw,
            [ToolCall("c", "double", {"number": 2})],
            assistant(calls=[ToolCall("c", "double", {"number": 2})]),
        ):
            assert [one.value for one in await bridge.execute(given, tools=[double])] == [4]

    with_model([], scenario)


# ── history ────────────────────────────────────────────────────────────────────────────────────────


def test_a_broken_history_is_repaired_and_said_so_and_the_input_stays_as_it_was() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        given = [
            user("Go."),
            assistant(calls=[ToolCall("lost", "double", {"number": 1})]),
            {"role": "tool", "tool_call_id": "nobody", "content": "?"},
            user("And?"),
        ]
        before = list(given)
        heard: list[Any] = []
        run = await bridge.run("any", given, tools=[double], on_event=heard.append)
        assert given == before
        (repaired,) = [one for one in heard if isinstance(one, HistoryRepaired)]
        assert len(repaired.notes) == 2
        assert find_problems(run.messages) == []
        outputs = [item for item in model.requests[0]["input"] if item["type"] == "function_call_output"]
        assert [item["call_id"] for item in outputs] == ["lost"]
        assert "cancelled" in outputs[0]["output"]

    with_model(["ok"], scenario)


def test_plain_objects_of_other_libraries_are_messages_too() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        conversation: list[Any] = [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See"},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "double", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "2"},
        ]
        run = await bridge.run("any", conversation, tools=[double])
        assert [message.role for message in run.messages] == ["system", "user", "assistant", "tool", "assistant"]
        kinds = [item["type"] for item in model.requests[0]["input"]]
        assert kinds == ["message", "message", "function_call", "function_call_output"]

    with_model(["ok"], scenario)


# ── tools ──────────────────────────────────────────────────────────────────────────────────────────


def test_results_keep_the_order_of_the_calls_whatever_finishes_first() -> None:
    first_done = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait for the other one."""
        await first_done.wait()
        return "slow"

    @tool
    async def quick() -> str:
        """Be quick."""
        first_done.set()
        return "quick"

    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        heard: list[Any] = []
        run = await bridge.run("any", "Go.", tools=[slow, quick], on_event=heard.append)
        assert [one.value for one in run.tool_results] == ["slow", "quick"]
        assert [one.result.name for one in heard if isinstance(one, ToolFinished)] == ["quick", "slow"]
        outputs = [item["output"] for item in model.requests[1]["input"] if item["type"] == "function_call_output"]
        assert outputs == ["slow", "quick"]

    with_model([say(calls=[("a", "slow", {}), ("b", "quick", {})]), "ok"], scenario)


def test_exclusive_tools_run_alone_and_in_their_place() -> None:
    running: list[str] = []
    seen: list[tuple[str, int]] = []

    def make(name: str, exclusive: bool) -> Tool[..., Any]:
        async def handler(arguments: dict[str, Any]) -> str:
            running.append(name)
            seen.append((name, len(running)))
            for _ in range(3):
                await asyncio.sleep(0)
            running.remove(name)
            return name

        return Tool.from_schema(name, "", {"type": "object"}, handler, exclusive=exclusive)

    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        tools = [make("a", False), make("b", False), make("alone", True), make("c", False)]
        await bridge.run("any", "Go.", tools=tools)
        assert [name for name, _ in seen] == ["a", "b", "alone", "c"]
        assert dict(seen) == {"a": 1, "b": 2, "alone": 1, "c": 1}

    with_model([say(calls=[(name, name, {}) for name in ("a", "b", "alone", "c")]), "ok"], scenario)


def test_no_more_tools_than_allowed_run_at_once() -> None:
    tracker = ExecutionTracker()

    @tool
    async def nap(number: int) -> int:
        """Nap."""
        await asyncio.sleep(0.01)
        return number

    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        await bridge.run("any", "Go.", tools=[tracker.track(nap)], limits=Limits(max_concurrency=3))
        assert (tracker.count(), tracker.most_at_once()) == (9, 3)

    with_model([say(calls=[call(f"c{at}", "nap", number=at) for at in range(9)]), "ok"], scenario)


def test_stop_run_ends_the_run_with_a_value() -> None:
    @tool
    def finish(answer: int) -> None:
        """Finish."""
        raise StopRun({"answer": answer})

    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[finish])
        assert (run.output, run.stop_reason, run.turns) == ({"answer": 42}, "completed", 1)
        assert find_problems(run.messages) == []

    with_model([say(calls=[call("a", "finish", answer=42)])], scenario)


def test_tools_get_their_dependencies_and_the_conversation() -> None:
    @tool
    def who(ctx: ToolContext[dict[str, str]], greeting: str) -> str:
        """Greet."""
        return f"{greeting} {ctx.deps['name']}, call {ctx.call.id} of {len(ctx.messages)}"

    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[who], deps={"name": "Ada"})
        assert run.tool_results[0].value == "Hello Ada, call a of 2"
        assert "ctx" not in model.requests[0]["tools"][0]["parameters"]["properties"]

    with_model([say(calls=[call("a", "who", greeting="Hello")]), "ok"], scenario)


def test_a_forced_tool_choice_is_honoured_once() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        await bridge.run("any", "Go.", tools=[double], tool_choice="double")
        assert [request["tool_choice"] for request in model.requests] == [
            {"type": "function", "name": "double"},
            "auto",
        ]

    with_model([say(calls=[call("a", number=1)]), "ok"], scenario)


def test_a_tool_choice_that_names_no_tool_is_refused() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        with pytest.raises(RequestRefused, match="`tool_choice`"):
            await bridge.run("any", "Go.", tools=[double], tool_choice="triple")

    with_model([], scenario)


def test_tools_are_those_of_the_call_or_else_those_of_the_bridge() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        await bridge.chat("any", "Go.")
        await bridge.chat("any", "Go.", tools=[])
        await bridge.chat("any", "Go.", tools=[explode])
        names = [[one["name"] for one in request.get("tools", ())] for request in model.requests]
        assert names == [["double"], [], ["explode"]]

    with_model(["a", "b", "c"], scenario, tools=[double])


def test_events_come_in_the_order_of_what_happens_and_end_with_the_result() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        async with bridge.run_stream("any", "Go.", tools=[double]) as events:
            kinds = [type(one) async for one in events]
        marks = [kind for kind in kinds if kind in (TurnFinished, ToolStarted, ToolFinished, RunFinished)]
        assert marks == [TurnFinished, ToolStarted, ToolFinished, TurnFinished, RunFinished]

    with_model([say(calls=[call("a", number=1)]), "ok"], scenario)


# ── the rest ───────────────────────────────────────────────────────────────────────────────────────


def test_options_become_fields_of_the_request() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        await bridge.chat(
            "any",
            [system("Be brief."), user("Go.")],
            temperature=0.5,
            reasoning_effort="low",
            instructions="In French.",
            extra={"text": {"verbosity": "low"}},
        )
        sent = model.requests[0]
        assert (sent["temperature"], sent["reasoning"], sent["text"]) == (0.5, {"effort": "low"}, {"verbosity": "low"})
        assert (sent["instructions"], sent["store"]) == ("In French.", False)

    with_model(["ok"], scenario)


def test_thinking_goes_back_with_the_next_turn() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double])
        assert run.messages[1].thinking == "Hm."
        thoughts = [item for item in model.requests[1]["input"] if item["type"] == "reasoning"]
        assert thoughts[0]["content"][0]["text"] == "Hm."

    with_model([say(thinking="Hm.", calls=[call("a", number=1)]), "ok"], scenario)


def test_the_same_conversation_gives_the_same_request_bytes() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        for _ in range(2):
            await bridge.run("any", "Go.", tools=[double])
        assert model.requests[0:2] == model.requests[2:4]

    with_model([say("a", calls=[call("a", number=1)]), "ok"] * 2, scenario)


def test_sync_facades_work_in_scripts_and_refuse_inside_a_loop() -> None:
    model = ScriptedModel([say(calls=[call("a", number=1)]), "2.", "hi"])
    bridge = Bridge(connect=model)
    assert bridge.run_sync("any", "Go.", tools=[double]).output == "2."
    assert bridge.chat_sync("any", "Go.").text == "hi"

    async def inside() -> None:
        with pytest.raises(RuntimeError, match=r"await bridge\.run"):
            bridge.run_sync("any", "Go.")

    asyncio.run(inside())


def test_an_empty_message_is_there_when_nothing_was_said() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", limits=Limits(max_turns=0))
        assert (run.message, run.stop_reason) == (Message("assistant"), "max_turns")

    with_model([], scenario)
