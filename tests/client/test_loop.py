"""The normative loop, step by step, with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from isthmus import (
    ApprovalRequired,
    Approve,
    Bridge,
    Deny,
    HistoryRepaired,
    Limits,
    Message,
    Provide,
    RunFinished,
    StopRun,
    Tool,
    ToolCall,
    ToolContext,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    assistant,
    dump_messages,
    load_messages,
    partial_result,
    system,
    tool,
    user,
)
from isthmus.client.repair import find_problems
from isthmus.errors import LimitReached, OutputInvalid, RequestRefused
from isthmus.testing import ExecutionTracker, ScriptedModel, say

Script = Callable[[Bridge, ScriptedModel], Coroutine[Any, Any, None]]


def with_model(script: list[Any], scenario: Script, **options: Any) -> None:
    async def main() -> None:
        model = ScriptedModel(script)
        async with Bridge(connect=model, **options) as bridge:
            await scenario(bridge, model)
        assert model.remaining == 0

    asyncio.run(main())


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def explode() -> str:
    """Fail."""
    raise LookupError("no such row")


def call(id: str, name: str = "double", **arguments: Any) -> tuple[str, str, dict[str, Any]]:
    return id, name, arguments


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


# ── limits ─────────────────────────────────────────────────────────────────────────────────────────


def test_max_turns_returns_what_there_is() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double], limits=Limits(max_turns=1))
        assert (run.stop_reason, run.output, run.tool_results[0].value) == ("max_turns", None, 2)
        assert find_problems(run.messages) == []
        again = await bridge.run("any", run.messages, tools=[double])
        assert again.output == "2, then."

    with_model([say(calls=[call("a", number=1)]), "2, then."], scenario)


def test_on_limit_raise_carries_the_same_result() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        with pytest.raises(LimitReached) as caught:
            await bridge.run("any", "Go.", tools=[double], limits=Limits(max_turns=1), on_limit="raise")
        assert caught.value.code == "max_turns"
        assert caught.value.result.tool_results[0].value == 2
        assert partial_result(caught.value) is caught.value.result

    with_model([say(calls=[call("a", number=1)])], scenario)


def test_calls_beyond_max_tool_calls_are_skipped_and_the_run_ends() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        tracker = ExecutionTracker()
        run = await bridge.run("any", "Go.", tools=[tracker.track(double)], limits=Limits(max_tool_calls=2))
        assert [one.status for one in run.tool_results] == ["ok", "ok", "skipped"]
        assert (run.stop_reason, tracker.count()) == ("max_tool_calls", 2)
        assert find_problems(run.messages) == []

    with_model([say(calls=[call("a", number=1), call("b", number=2), call("c", number=3)])], scenario)


def test_a_budget_that_is_just_enough_leaves_the_model_its_answer() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double], limits=Limits(max_tool_calls=1))
        assert (run.stop_reason, run.output) == ("completed", "2.")

    with_model([say(calls=[call("a", number=1)]), "2."], scenario)


def test_a_token_budget_ends_the_run_before_the_next_call() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double], limits=Limits(max_tokens=100))
        assert (run.stop_reason, run.usage.total_tokens) == ("budget", 110)

    with_model([say(calls=[call("a", number=1)], usage=(100, 10))], scenario)


def test_the_same_call_again_and_again_ends_the_run() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double])
        assert run.stop_reason == "repeated_calls"
        assert [one.status for one in run.tool_results] == ["ok", "ok", "ok", "skipped"]

    with_model([say(calls=[call(f"c{number}", number=1)]) for number in range(4)], scenario)


def test_a_different_call_in_between_is_no_doom_loop() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double])
        assert run.stop_reason == "completed"

    numbers = [1, 1, 1, 2, 1, 1]
    with_model([*(say(calls=[call(f"c{at}", number=number)]) for at, number in enumerate(numbers)), "ok"], scenario)


def test_turns_in_which_everything_fails_end_the_run() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[explode], on_limit="finalize")
        assert (run.stop_reason, run.output) == ("tool_errors", "It does not work.")

    failing = [say(calls=[("a", "explode", {}), ("b", "nothing", {"at": at})]) for at in range(3)]
    with_model([*failing, "It does not work."], scenario)


def test_calls_in_the_final_answer_are_not_carried_out() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        tracker = ExecutionTracker()
        run = await bridge.run(
            "any", "Go.", tools=[tracker.track(double)], limits=Limits(max_turns=1), on_limit="finalize"
        )
        assert tracker.count() == 1
        assert run.tool_results[0].value == 2
        assert find_problems(run.messages) == []

    with_model([say(calls=[call("a", number=1)]), say("Still:", calls=[call("b", number=1)])], scenario)


@pytest.mark.parametrize(
    ("answer", "reason", "output"),
    [
        (say("Once upon", finish="length"), "length", "Once upon"),
        (say("", finish="content_filter"), "content_filter", None),
        (say(refusal="I will not."), "refusal", None),
    ],
    ids=["length", "filter", "refusal"],
)
def test_how_an_answer_ended_is_how_the_run_ended(answer: Any, reason: str, output: str | None) -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.")
        assert (run.stop_reason, run.output) == (reason, output)

    with_model([answer], scenario)


def test_a_call_that_was_cut_off_is_never_carried_out() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        tracker = ExecutionTracker()
        run = await bridge.run("any", "Go.", tools=[tracker.track(double)])
        assert (run.tool_results[0].status, tracker.count()) == ("invalid_arguments", 0)

    with_model([say(calls=[("a", "double", '{"number": 1')], finish="length"), "Sorry."], scenario)


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


# ── approvals ──────────────────────────────────────────────────────────────────────────────────────


@tool(needs_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


PAUSING = say("Wait.", calls=[call("free", number=1), ("x", "delete", {"path": "/x"}), ("y", "delete", {"path": "/y"})])


def test_a_run_pauses_for_approval_and_resumes_with_every_decision() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        heard: list[Any] = []
        run = await bridge.run("any", "Go.", tools=[double, delete], on_event=heard.append)
        assert run.stop_reason == "approval_required"
        assert [one.id for one in run.pending] == ["x", "y"]
        assert [one.call.id for one in heard if isinstance(one, ApprovalRequired)] == ["x", "y"]
        assert [one.value for one in run.tool_results] == [2]
        done = await bridge.resume(run, approvals={"x": Approve(), "y": Deny("not that one")})
        assert (done.output, done.stop_reason, done.turns) == ("Done.", "completed", 2)
        assert [(one.call_id, one.status) for one in done.tool_results] == [
            ("free", "ok"),
            ("x", "ok"),
            ("y", "denied"),
        ]
        outputs = {
            item["call_id"]: item["output"]
            for item in model.requests[1]["input"]
            if item["type"] == "function_call_output"
        }
        assert list(outputs) == ["free", "x", "y"]
        assert "not that one" in outputs["y"]
        assert find_problems(done.messages) == []
        assert [message.role for message in done.new_messages] == ["assistant", "tool", "assistant"]
        assert done.usage.requests == 2

    with_model([PAUSING, "Done."], scenario)


def test_a_paused_run_survives_being_saved() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double, delete])
        saved = load_messages(dump_messages(run.messages))
        done = await bridge.resume(saved, model="any", tools=[double, delete], approvals={"x": True, "y": False})
        assert [(one.call_id, one.status) for one in done.tool_results] == [("x", "ok"), ("y", "denied")]
        assert done.output == "Done."

    with_model([PAUSING, "Done."], scenario)


def test_what_is_not_decided_still_waits() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double, delete])
        again = await bridge.resume(run, approvals={"x": Approve()})
        assert (again.stop_reason, [one.id for one in again.pending]) == ("approval_required", ["y"])
        done = await bridge.resume(again, approvals={"y": Approve()})
        assert done.output == "Done."
        assert [one.call_id for one in done.tool_results] == ["free", "x", "y"]

    with_model([PAUSING, "Done."], scenario)


def test_a_decision_about_a_call_that_does_not_wait_is_refused() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double, delete])
        with pytest.raises(RequestRefused, match="`approvals`"):
            await bridge.resume(run, approvals={"z": Approve()})

    with_model([PAUSING], scenario)


def test_going_on_without_deciding_counts_as_cancelled() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double, delete])
        done = await bridge.run("any", [*run.messages, user("Forget it.")], tools=[double, delete])
        statuses = [part.status for message in done.messages for part in message.tool_results]
        assert statuses == ["ok", "cancelled", "cancelled"]

    with_model([PAUSING, "Forgotten."], scenario)


def test_approval_can_depend_on_the_arguments_and_be_asked_for_on_the_spot() -> None:
    @tool(needs_approval=lambda ctx, arguments: arguments["amount"] > 100)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async def ask(call: ToolCall) -> bool:
        return call.arguments == {"amount": 500}

    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[pay], approve=ask)
        assert [one.status for one in run.tool_results] == ["ok", "ok", "denied"]

    calls = [call("a", "pay", amount=1), call("b", "pay", amount=500), call("c", "pay", amount=900)]
    with_model([say(calls=calls), "ok"], scenario)


def test_a_tool_without_a_handler_is_carried_out_elsewhere() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        elsewhere = Tool.from_schema("ask_user", "Ask.", {"type": "object"})
        run = await bridge.run("any", "Go.", tools=[elsewhere])
        assert [one.name for one in run.pending] == ["ask_user"]
        done = await bridge.resume(run, approvals={"a": Provide("blue")})
        assert (done.output, done.tool_results[0].value) == ("Blue it is.", "blue")

    with_model([say(calls=[("a", "ask_user", {})]), "Blue it is."], scenario)


def test_execute_denies_what_nobody_approved() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        calls = [ToolCall("a", "delete", {"path": "/"}), ToolCall("b", "delete", {"path": "/b"})]
        results = await bridge.execute(calls, tools=[delete], approvals={"b": Approve()})
        assert [one.status for one in results] == ["denied", "ok"]

    with_model([], scenario)


# ── structured output ──────────────────────────────────────────────────────────────────────────────


class City(BaseModel):
    name: str
    people: int

    @field_validator("people")
    @classmethod
    def some(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("nobody lives there")
        return value


def test_structured_output_is_read_into_its_type_after_tools_ran() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[double], output_type=City)
        assert run.output == City(name="Oslo", people=700_000)
        assert model.requests[0]["text"]["format"]["strict"] is True

    with_model([say(calls=[call("a", number=1)]), '{"name": "Oslo", "people": 700000}'], scenario)


def test_an_answer_that_breaks_the_schema_is_asked_for_again() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", output_type=City)
        assert run.output == City(name="Oslo", people=1)
        assert [item["role"] for item in model.requests[1]["input"]] == ["user", "assistant", "user"]

    with_model(["Oslo!", '{"name": "Oslo", "people": 1}'], scenario)


def test_a_rule_that_only_the_type_knows_costs_one_more_question() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", output_type=City)
        assert run.output is not None
        assert run.output.people == 5
        assert "nobody lives there" in model.requests[1]["input"][-1]["content"][0]["text"]

    with_model(['{"name": "Oslo", "people": 0}', '{"name": "Oslo", "people": 5}'], scenario)


def test_an_answer_that_never_fits_is_an_error_with_the_run_in_it() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        with pytest.raises(OutputInvalid) as caught:
            await bridge.run("any", "Go.", output_type=City)
        run = partial_result(caught.value)
        assert run is not None
        assert run.turns == 2

    with_model(['{"name": "Oslo", "people": 0}'] * 2, scenario)


@pytest.mark.parametrize(
    ("output_type", "text", "expected"),
    [
        (list[int], '{"result": [1, 2]}', [1, 2]),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, '{"a": 1}', {"a": 1}),
        (str, "plain", "plain"),
    ],
    ids=["list", "JSON Schema", "str"],
)
def test_other_output_types(output_type: Any, text: str, expected: object) -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        assert (await bridge.run("any", "Go.", output_type=output_type)).output == expected

    with_model([text], scenario)


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
