"""Runs that pause for a person, and go on."""

from __future__ import annotations

from typing import Any

import pytest

from acting import call, double, with_model
from isthmus import (
    ApprovalRequired,
    Approve,
    Bridge,
    Deny,
    Provide,
    Tool,
    ToolCall,
    dump_messages,
    load_messages,
    tool,
    user,
)
from isthmus.client.repair import find_problems
from isthmus.errors import RequestRefused
from isthmus.testing import ScriptedModel, say

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
