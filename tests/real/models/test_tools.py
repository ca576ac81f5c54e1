"""Tools on the real server: called, forced, named, kept away; custom tools; schemas that bind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from real.models.rig import ASKS_WEATHER, CHAT, DIALECTS, PICK, SHELL, TIME, WEATHER, Rig, calls_of, codes_of, real

pytestmark = real

Json = dict[str, Any]


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_tool_is_called_and_its_result_taken_back(rig: Rig, model: str, streamed: bool) -> None:
    body = {"model": model, "input": ASKS_WEATHER, "tools": [WEATHER]}
    first = rig.stream(body)[1] if streamed else rig.create(body)
    assert first["status"] == "completed"
    (call,) = calls_of(first)
    assert call["name"] == "get_weather"
    assert isinstance(json.loads(call["arguments"])["city"], str)
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    following = {"model": model, "previous_response_id": first["id"], "input": [result], "tools": [WEATHER]}
    second = rig.stream(following)[1] if streamed else rig.create(following)
    assert second["status"] == "completed"
    assert [item["type"] for item in second["output"]][-1] == "message"


@pytest.mark.parametrize("model", DIALECTS)
def test_a_required_call_is_made(rig: Rig, model: str) -> None:
    body = {"model": model, "input": "Say hello.", "tools": [WEATHER, TIME], "tool_choice": "required"}
    response = rig.create(body)
    assert calls_of(response)
    assert codes_of(response) == []


@pytest.mark.parametrize("model", DIALECTS)
def test_a_named_tool_is_the_one_that_is_called(rig: Rig, model: str) -> None:
    named = {"type": "function", "name": "get_time"}
    body = {"model": model, "input": ASKS_WEATHER, "tools": [WEATHER, TIME], "tool_choice": named}
    assert {call["name"] for call in calls_of(rig.create(body))} == {"get_time"}


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_none_holds(rig: Rig, model: str, streamed: bool) -> None:
    body = {"model": model, "input": ASKS_WEATHER, "tools": [WEATHER], "tool_choice": "none"}
    response = rig.stream(body)[1] if streamed else rig.create(body)
    assert response["status"] in ("completed", "incomplete")
    assert {item["type"] for item in response["output"]} <= {"reasoning", "message"}
    assert "<tool_call>" not in json.dumps(response["output"])


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_custom_tool_is_called_with_bare_text(rig: Rig, model: str, streamed: bool) -> None:
    body = {"model": model, "input": "Run ls. Use the tool.", "tools": [SHELL]}
    first = rig.stream(body)[1] if streamed else rig.create(body)
    (call,) = calls_of(first, "custom_tool_call")
    assert (call["name"], type(call["input"])) == ("shell", str)
    result = {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "a.txt"}
    second = rig.create({"model": model, "previous_response_id": first["id"], "input": [result], "tools": [SHELL]})
    assert second["status"] in ("completed", "incomplete")


@pytest.mark.parametrize("model", DIALECTS)
def test_a_strict_schema_binds_the_arguments_even_in_strict_mode(rig: Rig, model: str) -> None:
    body = {"model": model, "input": "Pick the colour red. Use the tool.", "tools": [PICK]}
    reply = rig.post("/v1/responses", body, {"Isthmus-Strict": "true"})
    assert reply.status == 200, reply.body
    (call,) = calls_of(reply.json)
    assert json.loads(call["arguments"]) == {"colour": "ultraviolet"}
    assert codes_of(reply.json) == []


@pytest.mark.parametrize("model", DIALECTS)
def test_one_call_at_a_time_is_heeded(rig: Rig, model: str) -> None:
    body = {"model": model, "input": ASKS_WEATHER, "tools": [WEATHER], "parallel_tool_calls": False}
    response = rig.create(body)
    assert len(calls_of(response)) == 1
    assert codes_of(response) == []


def test_a_call_that_was_cut_does_not_look_whole(rig: Rig) -> None:
    body = {"model": CHAT, "input": ASKS_WEATHER, "tools": [WEATHER], "max_output_tokens": 34}
    response = rig.create(body)
    assert response["status"] == "incomplete"
    assert all(call["status"] == "incomplete" for call in calls_of(response))
