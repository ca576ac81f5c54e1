"""Chat Completions bodies for scripts: the same words as one reply, as chunks, or as SSE bytes.

In: what the model is to say. Out: plain JSON objects, the same on every call: ids and times are fixed.
`chat_reply` and `chat_chunks` take the same arguments and carry the same answer, so a test can ask for
both and compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypedDict

import msgspec

from isthmus.protocol.json import JsonObject

Call = tuple[str, str, str | Mapping[str, Any]]
"""A tool call: id, name, and its arguments as text, or as an object that is written as JSON."""

Usage = tuple[int, int] | Mapping[str, Any]
"""Prompt and completion tokens, or the whole `usage` object where a test needs a vendor's own."""


class ChatAnswer(TypedDict, total=False):
    """The keywords that `chat_reply` and `chat_chunks` share."""

    reasoning: str | None
    refusal: str | None
    calls: Sequence[Call]
    finish: str | None
    usage: Usage | None
    model: str
    id: str
    reasoning_field: str


CREATED: Final = 1_700_000_000
DONE: Final = b"data: [DONE]\n\n"
KEEPALIVE: Final = b": keep-alive\n\n"


def chat_reply(
    text: str | None = None,
    *,
    reasoning: str | None = None,
    refusal: str | None = None,
    calls: Sequence[Call] = (),
    finish: str | None = None,
    usage: Usage | None = (10, 5),
    model: str = "scripted",
    id: str = "chatcmpl-1",
    reasoning_field: str = "reasoning_content",
) -> JsonObject:
    """One whole `chat.completion`; `finish` defaults to `tool_calls` with calls and `stop` without."""
    message: JsonObject = {"role": "assistant", "content": text}
    if reasoning is not None:
        message[reasoning_field] = reasoning
    if refusal is not None:
        message["refusal"] = refusal
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": _arguments(arguments)}}
            for call_id, name, arguments in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish or _finish(calls)}
    body = {"id": id, "object": "chat.completion", "created": CREATED, "model": model, "choices": [choice]}
    return body if usage is None else {**body, "usage": _usage(usage)}


def chat_chunks(
    text: str | None = None,
    *,
    reasoning: str | None = None,
    refusal: str | None = None,
    calls: Sequence[Call] = (),
    finish: str | None = None,
    usage: Usage | None = (10, 5),
    model: str = "scripted",
    id: str = "chatcmpl-1",
    reasoning_field: str = "reasoning_content",
    pieces: int = 3,
) -> list[JsonObject]:
    """The same answer as `chat.completion.chunk`s, each text cut into at most `pieces` pieces.

    Order: role, reasoning, text, refusal, calls, finish reason, then a chunk with no choices that
    carries the usage. `usage=None` leaves that last one out.
    """
    head = {"id": id, "object": "chat.completion.chunk", "created": CREATED, "model": model}

    def chunk(delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    for field, words in ((reasoning_field, reasoning), ("content", text), ("refusal", refusal)):
        chunks.extend(chunk({field: piece}) for piece in split(words or "", pieces))
    for index, call in enumerate(calls):
        chunks.extend(chunk({"tool_calls": [fragment]}) for fragment in _fragments(index, call, pieces))
    chunks.append(chunk({}, finish or _finish(calls)))
    if usage is not None:
        chunks.append({**head, "choices": [], "usage": _usage(usage)})
    return chunks


def chat_error(message: str, *, type: str = "server_error", code: str | None = None) -> JsonObject:
    """An error body in OpenAI's shape: a whole reply with a bad status, or a chunk inside a stream."""
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def sse(chunks: Iterable[JsonObject | bytes], *, done: bool = True) -> bytes:
    """The bytes of a stream: objects become `data:` events, bytes go in as they are."""
    body = b"".join(event(chunk) for chunk in chunks)
    return body + DONE if done else body


def event(chunk: JsonObject | bytes) -> bytes:
    """One `data:` event, or raw bytes unchanged."""
    return chunk if isinstance(chunk, bytes) else b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def split(text: str, pieces: int) -> list[str]:
    """Cut text into at most `pieces` pieces of nearly equal length, none of them empty."""
    count = max(1, min(pieces, len(text)))
    edges = [len(text) * number // count for number in range(count + 1)]
    return [text[start:end] for start, end in pairwise(edges) if start < end]


def _fragments(index: int, call: Call, pieces: int) -> Iterator[JsonObject]:
    call_id, name, arguments = call
    yield {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    for piece in split(_arguments(arguments), pieces):
        yield {"index": index, "function": {"arguments": piece}}


def _arguments(arguments: str | Mapping[str, Any]) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _finish(calls: Sequence[Call]) -> str:
    return "tool_calls" if calls else "stop"


def _usage(usage: Usage) -> JsonObject:
    if isinstance(usage, Mapping):
        return dict(usage)
    prompt, completion = usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
