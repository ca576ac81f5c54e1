"""A stored completion as chunks says what it says whole."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from isthmus.bridge.doors.chat.retell import retell_chat_completion

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CALLS = [
    {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for number in range(2)
]
LOGPROBS = {"content": [{"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}], "refusal": None}


def completion(finish: str = "stop", logprobs: Any = None, **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": None, "refusal": None, **message}
    choice = {"index": 0, "message": said, "logprobs": logprobs, "finish_reason": finish}
    told = {"isthmus": {"diagnostics": []}}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]} | (
        {"usage": USAGE, **told}
    )


def folded(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": None, "content": "", "refusal": None}
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            message["role"] = delta.get("role") or message["role"]
            message["content"] += delta.get("content") or ""
            for name in ("reasoning_content", "refusal", "function_call"):
                if delta.get(name):
                    message[name] = delta[name]
            for call in delta.get("tool_calls", ()):
                message.setdefault("tool_calls", []).append({name: call[name] for name in call if name != "index"})
    return {**message, "content": message["content"] or None}


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Hello"},
        {"content": "Let me see.", "tool_calls": CALLS, "reasoning_content": "Hm"},
        {"tool_calls": CALLS},
        {"refusal": "No."},
        {"function_call": {"name": "f", "arguments": "{}"}},
    ],
)
@pytest.mark.parametrize("include_usage", [False, True])
def test_folded_it_is_what_it_was(message: dict[str, Any], include_usage: bool) -> None:
    whole = completion(**message)
    chunks = retell_chat_completion(whole, include_usage=include_usage)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk)
        assert (chunk["id"], chunk["created"], chunk["model"]) == ("chatcmpl-1", 1, "m")
    assert folded(chunks) == whole["choices"][0]["message"]
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-1] == "stop"
    assert [chunk.get("usage") for chunk in chunks][-1] == (USAGE if include_usage else None)
    assert [chunk["isthmus"] for chunk in chunks if "isthmus" in chunk] == [{"diagnostics": []}]


def test_a_calls_index_is_its_place() -> None:
    chunks = retell_chat_completion(completion("tool_calls", tool_calls=CALLS))
    assert [call["index"] for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())] == [0, 1]


def test_probabilities_stand_beside_the_text() -> None:
    chunks = retell_chat_completion(completion(logprobs=LOGPROBS, content="a"))
    assert [chunk["choices"][0]["logprobs"] for chunk in chunks] == [None, LOGPROBS, None]
