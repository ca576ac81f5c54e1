"""Answers with a type."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from acting import call, double, with_model
from isthmus import (
    Bridge,
    partial_result,
    tool,
)
from isthmus.errors import OutputInvalid
from isthmus.testing import ScriptedModel, say

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


@tool(needs_approval=True)
def settle(place: str) -> str:
    """Settle there."""
    return f"settled in {place}"


ASKS = say(calls=[call("a", "settle", place="Oslo")])


def test_a_resumed_run_has_the_type_that_it_began_with() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[settle], output_type=City)
        assert (run.stop_reason, run.output) == ("approval_required", None)
        done = await bridge.resume(run, approvals={"a": True})
        assert done.output == City(name="Oslo", people=700_000)
        assert model.requests[1]["text"] == model.requests[0]["text"]

    with_model([ASKS, '{"name": "Oslo", "people": 700000}'], scenario)


def test_a_resumed_run_may_be_given_another_type() -> None:
    async def scenario(bridge: Bridge, model: ScriptedModel) -> None:
        run = await bridge.run("any", "Go.", tools=[settle])
        done = await bridge.resume(run, approvals={"a": True}, output_type=City)
        assert done.output == City(name="Oslo", people=700_000)
        async with bridge.resume_stream(run, approvals={"a": True}, output_type=list[int]) as events:
            assert (await events.drain()).output == [1, 2]
        saved = await bridge.resume(run.messages, model="any", tools=[settle], approvals={"a": True}, output_type=City)
        assert saved.output == City(name="Bergen", people=1)

    answers = ['{"name": "Oslo", "people": 700000}', '{"result": [1, 2]}', '{"name": "Bergen", "people": 1}']
    with_model([ASKS, *answers], scenario)


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
