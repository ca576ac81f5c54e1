"""The same question asked whole and streamed has the same answer: same items, same status, same usage."""

from __future__ import annotations

from typing import Any

import pytest

from flowing import DEEPSEEK, FULL, PLAIN, Flow
from isthmus.testing import Handler, chat, chat_chunks, chat_reply, reply, stream
from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import Answer

Json = dict[str, Any]


def function(name: str) -> Json:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, "strict": False}


LOGPROBS = {
    "content": [
        {"token": "Hi", "bytes": [72, 105], "logprob": -0.1, "top_logprobs": [{"token": "Hi", "logprob": -0.1}]}
    ]
}
CITED = {
    "type": "url_citation",
    "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2},
}


def _vendor(message: Json, **choice: Any) -> Handler:
    """A message as a vendor writes it, whole or as one delta."""
    head = {"id": "x", "created": 1, "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

    def handle(request: RecordedRequest) -> Answer:
        if not request.json.get("stream"):
            return reply({**head, "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}]})
        calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls") or ())]
        delta = {**message, **({"tool_calls": calls} if calls else {})}
        end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", **choice, "logprobs": None}]}
        return stream([{**head, "choices": [{"index": 0, "delta": delta, **choice, "finish_reason": None}]}, end])

    return handle


CASES: dict[str, tuple[str, Json, Handler, list[str]]] = {
    "text": (PLAIN, {}, chat("Hello"), ["message"]),
    "empty text": (PLAIN, {}, chat(""), ["message"]),
    "no content": (PLAIN, {}, chat(None), ["message"]),
    "reasoning and text": (
        DEEPSEEK,
        {"reasoning": {"effort": "high"}},
        chat("A", reasoning="B"),
        ["reasoning", "message"],
    ),
    "reasoning in another field": (
        PLAIN,
        {},
        chat("A", reasoning="B", reasoning_field="reasoning"),
        ["reasoning", "message"],
    ),
    "think tags": (PLAIN, {}, chat("<think>B</think>A"), ["reasoning", "message"]),
    "reasoning only": (DEEPSEEK, {}, chat(None, reasoning="B", finish="length"), ["reasoning", "message"]),
    "one call": (PLAIN, {"tools": [function("f")]}, chat(calls=[("c1", "f", '{"a":1}')]), ["function_call"]),
    "parallel calls": (
        PLAIN,
        {"tools": [function("f"), function("g")]},
        chat(calls=[("c1", "f", '{"a":1}'), ("c2", "g", "{}"), ("c3", "f", "{}")]),
        ["function_call"] * 3,
    ),
    "a call with reasoning": (
        DEEPSEEK,
        {"tools": [function("f")]},
        chat(calls=[("c1", "f", "{}")], reasoning="B"),
        ["reasoning", "function_call"],
    ),
    "a call without arguments": (PLAIN, {"tools": [function("f")]}, chat(calls=[("c1", "f", "")]), ["function_call"]),
    "a custom tool": (
        PLAIN,
        {"tools": [{"type": "custom", "name": "write"}]},
        chat(calls=[("c1", "write", {"input": 'line 1\nline "2"'})]),
        ["custom_tool_call"],
    ),
    "a shell": (
        PLAIN,
        {"tools": [{"type": "shell", "environment": {"type": "local"}}]},
        chat(calls=[("c1", "shell", {"commands": ["ls", "pwd"], "timeout_ms": 5})]),
        ["shell_call"],
    ),
    "a local shell": (
        PLAIN,
        {"tools": [{"type": "local_shell"}]},
        chat(calls=[("c1", "local_shell", {"command": ["ls"]})]),
        ["local_shell_call"],
    ),
    "a patch": (
        PLAIN,
        {"tools": [{"type": "apply_patch"}]},
        chat(calls=[("c1", "apply_patch", {"operation": {"type": "delete_file", "path": "a"}})]),
        ["apply_patch_call"],
    ),
    "refusal": (FULL, {}, chat(refusal="No."), ["message"]),
    "text and refusal": (FULL, {}, chat("Well", refusal="No."), ["message"]),
    "cut by length": (PLAIN, {}, chat("Hel", finish="length"), ["message"]),
    "filtered": (PLAIN, {}, chat("Hel", finish="content_filter"), ["message"]),
    "a call cut by length": (
        PLAIN,
        {"tools": [function("f")]},
        chat(calls=[("c1", "f", '{"a":')], finish="length"),
        ["function_call"],
    ),
    "cached and reasoning tokens": (
        PLAIN,
        {},
        chat(
            "x",
            usage={
                "prompt_tokens": 9,
                "completion_tokens": 8,
                "total_tokens": 17,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
        ),
        ["message"],
    ),
    "log probabilities": (
        FULL,
        {"top_logprobs": 1, "include": ["message.output_text.logprobs"]},
        _vendor({"role": "assistant", "content": "Hi"}, logprobs=LOGPROBS),
        ["message"],
    ),
    "citations": (FULL, {}, _vendor({"role": "assistant", "content": "Hi", "annotations": [CITED]}), ["message"]),
    "content in parts": (
        FULL,
        {},
        _vendor(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "B"}, {"type": "text", "text": "A"}]}
        ),
        ["reasoning", "message"],
    ),
    "arguments as an object": (
        PLAIN,
        {"tools": [function("f")]},
        _vendor(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
            }
        ),
        ["function_call"],
    ),
    "a legacy function call": (
        PLAIN,
        {"tools": [function("f")]},
        _vendor({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}),
        ["function_call"],
    ),
    "a call without an id": (
        PLAIN,
        {"tools": [function("f")]},
        _vendor({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}),
        ["function_call"],
    ),
    "an unknown tool": (PLAIN, {"tools": [function("f")]}, chat(calls=[("c1", "nobody", "{}")]), ["function_call"]),
}


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_whole_and_streamed_agree(flow: Flow, case: str) -> None:
    model, options, step, kinds = CASES[case]
    flow.script(step, step)
    whole, _ = flow.both({"model": model, "input": "hi", **options})
    assert [item["type"] for item in whole["output"]] == kinds
    first, second = flow.sent
    assert {name: second[name] for name in second if name not in ("stream", "stream_options")} == first
    assert second["stream"] is True


def test_text_beside_calls_has_the_same_items_whatever_their_order(flow: Flow) -> None:
    """A whole reply does not say which came first; a stream does."""
    answer: Any = {"text": "Let me look.", "calls": [("c1", "f", "{}")]}
    flow.script(reply(chat_reply(**answer)), stream(chat_chunks(**answer)))
    body = {"model": PLAIN, "input": "hi", "tools": [function("f")]}
    whole = flow.create(body)
    _, streamed = flow.stream(body)
    assert {item["type"] for item in whole["output"]} == {"message", "function_call"}
    by_type = [{item["type"]: {**item, "id": ""} for item in response["output"]} for response in (whole, streamed)]
    assert by_type[0] == by_type[1]
    assert [item["type"] for item in streamed["output"]] == ["message", "function_call"]


@pytest.mark.parametrize("streamed", [False, True], ids=["asked whole", "asked streamed"])
def test_an_upstream_that_answers_in_the_other_mode_is_understood(flow: Flow, streamed: bool) -> None:
    flow.script(reply(chat_reply("Hello")) if streamed else stream(chat_chunks("Hello")))
    body = {"model": PLAIN, "input": "hi"}
    response = flow.stream(body)[1] if streamed else flow.create(body)
    assert (response["status"], response["output_text"]) == ("completed", "Hello")
    assert response["usage"]["total_tokens"] == 15
