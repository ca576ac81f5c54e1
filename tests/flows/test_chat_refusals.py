"""Chat Completions in: a bad request is refused in the caller's own words, never in those of the other API."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import FULL, Flow

Json = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look", "parameters": {"type": "object", "properties": {}}},
}
CALLING = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}

BAD: dict[str, tuple[Json, str]] = {
    "no messages": ({"messages": None}, "messages"),
    "empty messages": ({"messages": []}, "messages"),
    "messages is text": ({"messages": "hi"}, "messages"),
    "a message is text": ({"messages": ["hi"]}, "messages[0]"),
    "no role": ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    "unknown role": ({"messages": [*HI, {"role": "robot", "content": "hi"}]}, "messages[1].role"),
    "content is a number": ({"messages": [*HI, *HI, {"role": "user", "content": 5}]}, "messages[2].content"),
    "a part is text": ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]"),
    "a part without text": (
        {"messages": [*HI, CALLING, {"role": "user", "content": [{"type": "text"}]}]},
        "messages[2].content[0].text",
    ),
    "text that is a number": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": 4}]}]},
        "messages[0].content[0].text",
    ),
    "no tool_call_id": ({"messages": [*HI, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
    "a call without id": (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]},
        "messages[0].tool_calls[0].id",
    ),
    "a call without function": (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]},
        "messages[0].tool_calls[0].function",
    ),
    "tools is an object": ({"tools": {}}, "tools"),
    "a tool without function": ({"tools": [{"type": "function"}]}, "tools[0].function"),
    "a tool without name": ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    "a tool without type": ({"tools": [{}]}, "tools[0].type"),
    "a custom tool without name": ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name"),
    "parameters that are text": (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": "x"}}]},
        "tools[0].function.parameters",
    ),
    "a legacy function without name": ({"functions": [{}]}, "functions[0].name"),
    "temperature is text": ({"temperature": "hot"}, "temperature"),
    "max_tokens is text": ({"max_tokens": "many"}, "max_tokens"),
    "stream is text": ({"stream": "yes"}, "stream"),
    "response_format is text": ({"response_format": "json"}, "response_format"),
    "no json_schema": ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    "no schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
        "response_format.json_schema.schema",
    ),
    "a bad schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "odd"}}}},
        "response_format.json_schema.schema",
    ),
    "an unknown format": ({"response_format": {"type": "yaml"}}, "response_format"),
    "n": ({"n": 2}, "n"),
    "reasoning_effort is a number": ({"reasoning_effort": 3}, "reasoning_effort"),
    "an unknown effort": ({"reasoning_effort": "extreme"}, "reasoning_effort"),
    "an unknown tool choice": (
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "nobody"}}},
        "tool_choice",
    ),
    "stream_options is text": ({"stream_options": "x"}, "stream_options"),
    "metadata is text": ({"metadata": "x"}, "metadata"),
}


@pytest.mark.parametrize(("change", "param"), BAD.values(), ids=BAD.keys())
def test_a_bad_request_is_refused_in_the_callers_words(flow: Flow, change: Json, param: str) -> None:
    answer = flow.post("/v1/chat/completions", {"model": FULL, "messages": HI, **change})
    assert (answer.status, answer.error["param"]) == (400, param), answer.body
    assert "input" not in answer.error["message"].replace("input_", "")
    assert flow.sent == []
