"""The newest fields, items and tools of the protocol over HTTP: what reaches the upstream, what the client is told."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import chat

Json = dict[str, Any]
LOOK: Json = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
CALL: Json = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}


def say(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def told(response: Json) -> dict[str, str]:
    return {said["path"]: said["action"] for said in response.get("isthmus", {}).get("diagnostics", ())}


def test_nulls_everywhere_are_as_good_as_nothing(flow: Flow) -> None:
    nulls: Json = dict.fromkeys(
        ["temperature", "text", "reasoning", "tool_choice", "moderation", "prompt_cache_options", "image", "user"]
    )
    flow.script(chat("ok"), chat("ok"))
    plain = flow.create({"model": PLAIN, "input": [say("hi")], "tools": [LOOK]})
    item = {**say("hi"), "id": None, "status": None, "phase": None}
    tool = {**LOOK, "defer_loading": None, "description": None, "async": None}
    given = flow.create({"model": PLAIN, "input": [item], "tools": [tool], **nulls})
    assert flow.sent[0] == flow.sent[1]
    assert {**given, "id": 0, "created_at": 0, "completed_at": 0, "output": 0} == {
        **plain, "id": 0, "created_at": 0, "completed_at": 0, "output": 0
    }  # fmt: skip


def test_services_that_only_report_are_left_out_and_said_to_be(flow: Flow) -> None:
    flow.script(chat("ok"))
    response = flow.create(
        {
            "model": PLAIN,
            "input": "hi",
            "moderation": {"model": "omni", "policy": {"input": {"mode": "score"}}},
            "prompt_cache_options": {"mode": "explicit", "ttl": "12h", "comparison_response_id": "resp_1"},
            "image": {"context_compression": "auto"},
            "access_programs": {"cyber": "standard"},
            "reasoning": {"mode": "pro"},
            "service_tier": "ultrafast",
            "temprature": 1,
        }
    )
    assert set(flow.sent[0]) == {"model", "messages"}
    ignored = {"moderation", "prompt_cache_options", "reasoning.mode", "service_tier", "temprature"}
    assert told(response) == dict.fromkeys(ignored, "ignored")
    slip = next(said for said in response["isthmus"]["diagnostics"] if said["path"] == "temprature")
    assert "did you mean `temperature`?" in slip["message"]
    assert response["moderation"]["output"]["type"] == "error"
    assert response["prompt_cache_diagnostics"] == {"type": "unavailable"}
    assert (response["image"], response["service_tier"]) == ({"context_compression": "disabled"}, "default")


@pytest.mark.parametrize(
    ("door", "body", "slip", "meant"),
    [
        ("/v1/responses", {"input": "hi"}, "temprature", "temperature"),
        ("/v1/responses", {"input": "hi"}, "max_output_token", "max_output_tokens"),
        ("/v1/chat/completions", {"messages": [say("hi")]}, "temprature", "temperature"),
        ("/v1/chat/completions", {"messages": [say("hi")]}, "max_completion_tokns", "max_completion_tokens"),
        ("/v1/messages", {"messages": [say("hi")], "max_tokens": 9}, "temprature", "temperature"),
        ("/v1/messages", {"messages": [say("hi")], "max_tokens": 9}, "stop_sequenses", "stop_sequences"),
    ],
)
def test_a_slip_is_told_at_every_door(flow: Flow, door: str, body: Json, slip: str, meant: str) -> None:
    flow.script(chat("ok"))
    messages = [{"role": "user", "content": "hi"}]
    asked = {**body, **({"messages": messages} if "messages" in body else {}), "model": PLAIN, slip: 1}
    answer = flow.post(door, asked)
    assert answer.status == 200, answer.json
    [told] = [each for each in answer.json["isthmus"]["diagnostics"] if each["path"] == slip]
    assert told["action"] == "ignored"
    assert f"did you mean `{meant}`?" in told["message"]


def test_a_fast_tier_is_sent_as_asked_and_shown_as_priority(flow: Flow) -> None:
    flow.script(chat("ok"))
    response = flow.create({"model": FULL, "input": "hi", "service_tier": "fast"})
    assert (flow.sent[0]["service_tier"], response["service_tier"]) == ("fast", "priority")


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"moderation": {"model": "m", "policy": {"output": {"mode": "block"}}}}, "moderation"),
        ({"access_programs": {"cyber": "daybreak_red"}}, "access_programs"),
        ({"image": {"context_compression": "enabled"}}, "image"),
        ({"multi_agent": {"enabled": True}}, "multi_agent"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}, "tools[0]"),
        ({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, "tools[0]"),
        (
            {
                "tools": [{"type": "programmatic_tool_calling"}, LOOK],
                "tool_choice": {"type": "programmatic_tool_calling"},
            },
            "tool_choice",
        ),
        ({"input": [say("go"), {"type": "function_call_output", "name": "look", "output": "x"}]}, "input[1].call_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_had_is_refused_before_anything_is_sent(flow: Flow, asked: Json, param: str) -> None:
    answer = flow.post("/v1/responses", {"model": PLAIN, "input": "hi", **asked})
    assert (answer.status, answer.error["param"]) == (400, param)
    assert not flow.sent


def test_an_update_counts_for_the_answer_and_is_stored_but_never_told(flow: Flow) -> None:
    flow.script(chat("ok"), chat("ok"))
    update = {"type": "configuration_update", "reasoning": {"effort": "none"}}
    asked = {"model": DEEPSEEK, "reasoning": {"effort": "high"}}
    first = flow.create({**asked, "input": [say("hi"), update]})
    flow.create({**asked, "input": "more", "previous_response_id": first["id"]})
    assert [sent["thinking"] for sent in flow.sent] == [{"type": "disabled"}] * 2
    assert [len(sent["messages"]) for sent in flow.sent] == [1, 3]
    assert first["reasoning"]["effort"] == "high"
    assert [item["type"] for item in first["output"]] == ["message"]


def test_reasoning_of_earlier_turns_goes_back_as_the_client_says(flow: Flow) -> None:
    thought = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    items = [say("go"), thought, CALL, output, answer, say("more")]
    for context in ("auto", "current_turn"):
        flow.script(chat("ok"))
        asked = {"effort": "high", "context": context}
        response = flow.create({"model": DEEPSEEK, "input": items, "tools": [LOOK], "reasoning": asked})
        assert response["reasoning"]["context"] == context
    auto, current = ([m.get("reasoning_content") for m in sent["messages"]] for sent in flow.sent)
    assert "hm" in auto
    assert "hm" not in current


def test_programs_become_calls_and_their_tools_are_offered_directly(flow: Flow) -> None:
    flow.script(chat("ok"))
    items = [
        say("go"),
        {"type": "program", "call_id": "p", "code": "look()", "fingerprint": "fp"},
        {"type": "program_output", "call_id": "p", "result": "42", "status": "completed"},
    ]
    tools = [{"type": "programmatic_tool_calling"}, {**LOOK, "allowed_callers": ["programmatic"]}]
    response = flow.create({"model": PLAIN, "input": items, "tools": tools})
    assert [one["role"] for one in flow.sent[0]["messages"]] == ["user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in flow.sent[0]["tools"]] == ["look"]
    assert told(response) == {"tools[0]": "ignored", "tools[1]": "degraded"}


def test_a_late_output_reaches_the_model_when_it_comes(flow: Flow) -> None:
    flow.script(chat("ok"))
    late = {"type": "function_call_output", "name": "look", "output": "found it"}
    items = [say("go"), CALL, say("meanwhile?"), late]
    response = flow.create({"model": PLAIN, "input": items, "tools": [{**LOOK, "async": True}]})
    messages = flow.sent[0]["messages"]
    assert [one["role"] for one in messages][:4] == ["user", "assistant", "tool", "user"]
    assert "still running" in messages[2]["content"]
    assert "found it" in str(messages[-1]["content"])
    assert told(response) == {"tools[0]": "degraded", "input[3]": "degraded"}
