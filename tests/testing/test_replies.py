from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from isthmus.testing import DONE, KEEPALIVE, chat_chunks, chat_error, chat_reply, sse
from isthmus.testing.replies import split

ANSWERS: dict[str, dict[str, Any]] = {
    "text": {"text": "Hello there"},
    "reasoning": {"text": "4", "reasoning": "two and two"},
    "other reasoning field": {"text": "4", "reasoning": "two and two", "reasoning_field": "reasoning"},
    "refusal": {"refusal": "I will not."},
    "calls": {"calls": [("call_1", "get", '{"city":"Oslo"}'), ("call_2", "put", {"n": 1})]},
    "cut": {"text": "Hel", "finish": "length"},
    "vendor usage": {"text": "x", "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "odd": {}}},
    "no usage": {"text": "x", "usage": None},
    "nothing": {},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("pieces", [1, 2, 7, 1000])
def test_chunks_fold_to_the_whole_reply(answer: dict[str, Any], pieces: int) -> None:
    folded = fold(chat_chunks(**answer, pieces=pieces))
    whole = chat_reply(**answer)
    message = whole["choices"][0]["message"]
    assert folded["message"] == {**message, "content": message["content"] or ""}
    assert folded["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert folded["usage"] == whole.get("usage")


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_official_sdk_reads_replies_and_chunks(answer: dict[str, Any]) -> None:
    ChatCompletion.model_validate(chat_reply(**answer))
    for chunk in chat_chunks(**answer):
        ChatCompletionChunk.model_validate(chunk)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.integers(min_value=1, max_value=20))
def test_split_loses_nothing_and_makes_no_empty_piece(text: str, pieces: int) -> None:
    made = split(text, pieces)
    assert "".join(made) == text
    assert len(made) <= pieces
    assert all(made)


def test_the_same_words_give_the_same_bytes() -> None:
    assert sse(chat_chunks("a b c", calls=[("c", "f", {"x": 1})])) == sse(
        chat_chunks("a b c", calls=[("c", "f", {"x": 1})])
    )


def test_sse_writes_objects_as_events_and_bytes_as_they_are() -> None:
    assert sse([{"a": 1}, KEEPALIVE]) == b'data: {"a":1}\n\n: keep-alive\n\n' + DONE
    assert sse([{"a": 1}], done=False) == b'data: {"a":1}\n\n'


def test_an_error_body_has_the_four_keys() -> None:
    assert chat_error("no", code="c") == {
        "error": {"message": "no", "type": "server_error", "param": None, "code": "c"}
    }


def fold(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Chunks to a message, the plain way."""
    message: dict[str, Any] = {}
    finish = usage = None
    for chunk in chunks:
        usage = chunk.get("usage", usage)
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            for key, value in choice["delta"].items():
                if key != "tool_calls":
                    message[key] = message.get(key, "") + value
                    continue
                calls = message.setdefault("tool_calls", [])
                for fragment in value:
                    if "id" in fragment:
                        calls.append({key: fragment[key] for key in ("id", "type", "function")})
                    else:
                        calls[fragment["index"]]["function"]["arguments"] += fragment["function"]["arguments"]
    return {"message": message, "finish_reason": finish, "usage": usage}
