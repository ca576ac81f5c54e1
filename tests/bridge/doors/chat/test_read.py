"""A Chat Completions request as the Responses request that means the same, and the way back to its words."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.chat.read import ChatRequest, receive_chat_request, reword
from isthmus.errors import RequestRefused

Json = dict[str, Any]

HI = [{"role": "user", "content": "hi"}]
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}
SCHEMA = {"name": "answer", "schema": {"type": "object"}}


def receive(**fields: Any) -> ChatRequest:
    return receive_chat_request({"model": "m", "messages": HI, **fields})


TRANSLATED: dict[str, tuple[Json, Json]] = {
    "nothing": ({}, {}),
    "a function tool": (
        {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
        {"tools": [{"type": "function", "name": "f", "strict": True}]},
    ),
    "a custom tool with its grammar": (
        {"tools": [{"type": "custom", "custom": {"name": "c", "format": GRAMMAR}}]},
        {
            "tools": [
                {
                    "type": "custom",
                    "name": "c",
                    "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
                }
            ]
        },
    ),
    "a tool of another type": ({"tools": [{"type": "retrieval", "k": 1}]}, {"tools": [{"type": "retrieval", "k": 1}]}),
    "legacy functions": (
        {"functions": [{"name": "f"}], "function_call": {"name": "f"}},
        {"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "f"}},
    ),
    "legacy choice in a word": ({"function_call": "none"}, {"tool_choice": "none"}),
    "web search": (
        {"web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Oslo"}}}},
        {"tools": [{"type": "web_search", "user_location": {"type": "approximate", "city": "Oslo"}}]},
    ),
    "a choice in a word": ({"tool_choice": "required"}, {"tool_choice": "required"}),
    "a named choice": (
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tool_choice": {"type": "function", "name": "f"}},
    ),
    "allowed tools": (
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]},
            }
        },
        {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}},
    ),
    "the old limit": ({"max_tokens": 5}, {"max_output_tokens": 5}),
    "the new limit wins": ({"max_tokens": 5, "max_completion_tokens": 7}, {"max_output_tokens": 7}),
    "effort": ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
    "verbosity and a schema": (
        {"verbosity": "low", "response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        {"text": {"verbosity": "low", "format": {"type": "json_schema", **SCHEMA}}},
    ),
    "plain JSON": ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
    "log probabilities": (
        {"logprobs": True, "top_logprobs": 2},
        {"top_logprobs": 2, "include": ["message.output_text.logprobs"]},
    ),
    "log probabilities of the tokens alone": (
        {"logprobs": True},
        {"top_logprobs": 0, "include": ["message.output_text.logprobs"]},
    ),
    "everything else keeps its name": ({"seed": 3, "temperature": 0.5}, {"seed": 3, "temperature": 0.5}),
}


@pytest.mark.parametrize(("asked", "translated"), TRANSLATED.values(), ids=list(TRANSLATED))
def test_a_field_is_translated(asked: Json, translated: Json) -> None:
    item = {"type": "message", "role": "user", "content": "hi"}
    assert receive(**asked).request.body == {"model": "m", "input": [item], "store": False, **translated}


def test_what_the_reply_must_remember() -> None:
    plain = receive(store=True)
    assert (plain.include_usage, plain.legacy_functions, plain.request.body["store"]) == (False, False, True)
    other = receive(stream_options={"include_usage": True}, functions=[{"name": "f"}])
    assert (other.include_usage, other.legacy_functions) == (True, True)


REFUSED: dict[str, tuple[Any, str | None, str, str]] = {
    "no object": (b"[1]", None, "invalid_type", "must be a JSON object"),
    "no messages": ({"model": "m"}, "messages", "missing_required_parameter", "`messages` is missing"),
    "empty messages": ({"messages": []}, "messages", "invalid_value", "send at least one message"),
    "a wrong type": ({"messages": HI, "store": "x"}, "store", "invalid_type", "`store`: expected"),
    "a tool without a function": (
        {"messages": HI, "tools": [{"type": "function"}]},
        "tools[0].function",
        "missing_required_parameter",
        "give it a `name`",
    ),
    "a function without a name": (
        {"messages": HI, "tools": [{"type": "function", "function": {}}]},
        "tools[0].function.name",
        "missing_required_parameter",
        "`tools[0].function` has no `name`",
    ),
    "a format without its schema": (
        {"messages": HI, "response_format": {"type": "json_schema"}},
        "response_format.json_schema",
        "missing_required_parameter",
        "give it a `name` and a `schema`",
    ),
}


@pytest.mark.parametrize(("raw", "param", "code", "words"), REFUSED.values(), ids=list(REFUSED))
def test_a_bad_request_is_refused_by_the_name_of_its_field(raw: Any, param: str | None, code: str, words: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        receive_chat_request(raw)
    assert (refused.value.param, refused.value.code) == (param, code)
    assert words in refused.value.message


def test_a_planners_path_is_told_in_the_callers_words() -> None:
    assistant = {"role": "assistant", "content": "a", "reasoning_content": "r"}
    chat = receive(
        messages=[*HI, assistant],
        tools=[{"type": "function", "function": {"name": "f"}}, {"type": "retrieval"}],
        functions=[{"name": "g"}],
        web_search_options={},
    )
    told = {
        "input": "messages",
        "input[2].content": "messages[1].content",
        "input[9]": "messages",
        "tools[0]": "tools[0]",
        "tools[0].type": "tools[0].type",
        "tools[0].parameters": "tools[0].function.parameters",
        "tools[1].k": "tools[1].k",
        "tools[2].parameters": "functions[0].parameters",
        "tools[3].filters": "web_search_options.filters",
        "tools[9].name": "tools[9].name",
        "text.format.schema": "response_format.json_schema.schema",
        "max_output_tokens": "max_completion_tokens",
        "seed": "seed",
    }
    assert {path: chat.path(path) for path in told} == told


def test_a_refusal_is_reworded_with_everything_it_carries() -> None:
    chat = receive()
    said = reword(RequestRefused("`input[0]`: no", code="c", param="input[0]", metadata={"a": 1}), chat.path)
    assert (said.message, said.code, said.param, said.metadata) == ("`messages[0]`: no", "c", "messages[0]", {"a": 1})
    assert reword(RequestRefused("no"), chat.path).message == "no"
