"""Limits end runs, they do not destroy them."""

from __future__ import annotations

from typing import Any

import pytest

from acting import call, double, explode, with_model
from isthmus import (
    Bridge,
    Limits,
    partial_result,
)
from isthmus.client.repair import find_problems
from isthmus.errors import LimitReached
from isthmus.testing import ExecutionTracker, ScriptedModel, say

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
