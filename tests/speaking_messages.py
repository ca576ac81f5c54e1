"""A scripted upstream that speaks Anthropic Messages: content blocks as one reply, or as the events of a stream.

`claude(*blocks)` is a step of a `ScriptedUpstream`. Thinking blocks are made by `thought`, with a signature that a
strict server (`strict_anthropic`) knows again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from isthmus.testing import Handler, RecordedRequest, reply, stream
from isthmus.testing.replies import split

Json = dict[str, Any]
USAGE: Json = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 20,
    "output_tokens": 7,
    "output_tokens_details": {"thinking_tokens": 2},
}


def said(text: str, **rest: Any) -> Json:
    return {"type": "text", "text": text, **rest}


def thought(text: str) -> Json:
    return {"type": "thinking", "thinking": text, "signature": sign(text)}


def hidden(data: str = "b3BhcXVl") -> Json:
    return {"type": "redacted_thinking", "data": data}


def called(id: str, name: str, **input: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def sign(text: str) -> str:
    return "sig." + hashlib.sha256(text.encode()).hexdigest()


def message(blocks: Sequence[Json], *, stop: str | None = None, usage: Json | None = None, **rest: Any) -> Json:
    return {
        "id": "msg_up",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": list(blocks),
        "stop_reason": stop or ("tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"),
        "stop_sequence": None,
        "usage": USAGE if usage is None else usage,
        **rest,
    }


def events(blocks: Sequence[Json], *, pieces: int = 3, **rest: Any) -> list[Json]:
    """The same as a stream: the first usage knows the input, the last one everything."""
    whole = message(blocks, **rest)
    spent = {name: count for name, count in whole["usage"].items() if name.endswith("input_tokens")}
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**spent, "output_tokens": 1} if spent else {}}
    told: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        told += block_events(index, block, pieces)
    end = {name: whole[name] for name in ("stop_reason", "stop_sequence", "stop_details") if name in whole}
    told.append({"type": "message_delta", "delta": end, "usage": whole["usage"]})
    return [*told, {"type": "message_stop"}]


def block_events(index: int, block: Json, pieces: int = 3) -> Iterator[Json]:
    def delta(**fields: Any) -> Json:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    empty: Json = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
    opened = {**block, **empty.get(block["type"], {})}
    opened.pop("citations", None)
    yield {"type": "content_block_start", "index": index, "content_block": opened}
    match block["type"]:
        case "text":
            yield from (delta(type="text_delta", text=piece) for piece in split(block["text"], pieces))
            yield from (delta(type="citations_delta", citation=one) for one in block.get("citations", ()))
        case "thinking":
            yield from (delta(type="thinking_delta", thinking=piece) for piece in split(block["thinking"], pieces))
            yield delta(type="signature_delta", signature=block["signature"])
        case "tool_use" if block["input"]:
            text = msgspec.json.encode(block["input"]).decode()
            yield from (delta(type="input_json_delta", partial_json=piece) for piece in ["", *split(text, pieces)])
    yield {"type": "content_block_stop", "index": index}


def named_sse(told: Iterable[Json]) -> Iterator[bytes]:
    for event in told:
        yield b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"


def claude(*blocks: Json, pieces: int = 3, slice: int | None = None, **rest: Any) -> Handler:
    """An answer in the mode that the request asks for."""

    def handle(request: RecordedRequest) -> Any:
        if request.json.get("stream"):
            return stream(named_sse(events(blocks, pieces=pieces, **rest)), done=False, slice=slice)
        return reply(message(blocks, **rest), slice=slice)

    return handle


def claude_error(status: int, kind: str, words: str, *, retry_after: float | None = None) -> Any:
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_up"}
    return reply(body, status=status, headers=headers)
