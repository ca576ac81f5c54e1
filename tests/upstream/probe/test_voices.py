"""The same question in both dialects, and what is heard of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.upstream.probe.answers import Answer
from isthmus.upstream.probe.voices import CHAT, RESPONSES, Said

TOOL = {"name": "f", "parameters": {"type": "object"}}
ASKED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "tools": (
        {"tools": [TOOL]},
        {"tools": [{"type": "function", "function": TOOL}]},
        {"tools": [{"type": "function", **TOOL}]},
    ),
    "a choice by its word": ({"choice": "required"}, {"tool_choice": "required"}, {"tool_choice": "required"}),
    "a choice by name": (
        {"choice": ("function", "f")},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tool_choice": {"type": "function", "name": "f"}},
    ),
    "plain JSON": (
        {"json": True},
        {"response_format": {"type": "json_object"}},
        {"text": {"format": {"type": "json_object"}}},
    ),
    "an effort": ({"effort": "none"}, {"reasoning_effort": "none"}, {"reasoning": {"effort": "none"}}),
    "log probabilities": (
        {"logprobs": True},
        {"logprobs": True, "top_logprobs": 1},
        {"top_logprobs": 1, "include": ["message.output_text.logprobs"]},
    ),
    "anything else": ({"seed": 1}, {"seed": 1}, {"seed": 1}),
}


@pytest.mark.parametrize(("asked", "chat", "responses"), ASKED.values(), ids=ASKED)
def test_a_question_in_both_dialects(asked: dict[str, Any], chat: dict[str, Any], responses: dict[str, Any]) -> None:
    said = [("system", "a"), ("user", "b")]
    body = CHAT.body("m", said, {"max_tokens": 5}, asked)
    assert body.pop("messages") == [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]
    assert body == {"model": "m", "max_tokens": 5, **chat}
    body = RESPONSES.body("m", said, {"max_output_tokens": 5}, asked)
    assert [(item["role"], item["content"][0]["text"]) for item in body.pop("input")] == said
    assert body == {"model": "m", "store": False, "max_output_tokens": 5, **responses}


def test_an_image_goes_with_the_last_words() -> None:
    chat = CHAT.body("m", [("user", "see")], {}, {"image": "data:x"})
    assert [part["type"] for part in chat["messages"][-1]["content"]] == ["text", "image_url"]
    own = RESPONSES.body("m", [("user", "see")], {}, {"image": "data:x"})
    assert [part["type"] for part in own["input"][-1]["content"]] == ["input_text", "input_image"]


def test_both_are_heard_alike() -> None:
    function = {"name": "f", "arguments": "{}"}
    message = {"content": "hi", "reasoning_content": "hm", "tool_calls": [{"function": function}]}
    choice = {"message": message, "finish_reason": "length", "logprobs": {"content": [{"token": "hi"}]}}
    chat = CHAT.hear(Answer(200, {"choices": [choice], "usage": {"completion_tokens": 3}}))
    part = {"type": "output_text", "text": "hi", "logprobs": [{"token": "hi"}]}
    output = [{"type": "reasoning"}, {"type": "message", "content": [part]}, {"type": "function_call", **function}]
    whole = {"output": output, "status": "incomplete", "usage": {"output_tokens": 3}}
    assert chat == Said("hi", ("reasoning_content",), (("f", "{}"),), cut=True, logprobs=True, usage=True)
    assert RESPONSES.hear(Answer(200, whole)) == Said("hi", ("reasoning",), chat.calls, True, True, True)
    streamed = Answer(200, None, ({"type": "response.created", "response": {}}, {"type": "x", "response": whole}))
    assert RESPONSES.hear(streamed) == RESPONSES.hear(Answer(200, whole))


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, {"output": 1}, {"output": [1, {"type": "message"}]}])
def test_junk_is_heard_as_nothing(junk: Any) -> None:
    for voice in (CHAT, RESPONSES):
        assert voice.hear(Answer(200, junk)) == Said()
        assert voice.hear(Answer(200, None, (junk,))).text == ""
