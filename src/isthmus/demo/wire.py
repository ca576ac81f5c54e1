"""A `Reply` as Chat Completions writes it: one whole object, or chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from isthmus.demo.model import MODELS, Piece, Reply
from isthmus.demo.question import Refused
from isthmus.protocol.json import JsonObject

CREATED: Final = 1_767_225_600
"""The model knows no clock: all its answers are of the first second of 2026."""
DONE: Final = b"data: [DONE]\n\n"

_encode: Final = msgspec.json.Encoder().encode


def whole(reply: Reply) -> JsonObject:
    """The `chat.completion`: the pieces of the stream, joined."""
    message: JsonObject = {"role": "assistant", "content": None}
    calls: list[JsonObject] = []
    for piece in reply.pieces:
        if piece.kind != "call":
            message[piece.kind] = (message.get(piece.kind) or "") + piece.text
        elif piece.id:
            calls.append({"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": ""}})
        else:
            calls[-1]["function"]["arguments"] += piece.text
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None and "refusal" not in message:
        message["content"] = ""
    return {
        **_head(reply, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}],
        "usage": reply.usage,
    }


def opening(reply: Reply) -> bytes:
    """The first chunk: whose turn it is."""
    return _chunk(reply, {"role": "assistant", "content": ""})


def piece_chunks(reply: Reply) -> Iterator[bytes]:
    return (_chunk(reply, _delta(piece)) for piece in reply.pieces)


def closing(reply: Reply, *, usage: bool) -> bytes:
    """The finish reason, the usage if it was asked for, and the end."""
    end = _chunk(reply, {}, reply.finish)
    if usage:
        end += event({**_head(reply, "chat.completion.chunk"), "choices": [], "usage": reply.usage})
    return end + DONE


def error_body(refused: Refused) -> JsonObject:
    kind = "rate_limit_error" if refused.status == 429 else "server_error"
    if refused.status < 500 and refused.status != 429:
        kind = "invalid_request_error"
    return {"error": {"message": refused.message, "type": kind, "param": None, "code": refused.code}}


def model_list() -> JsonObject:
    models = [{"id": name, "object": "model", "created": CREATED, "owned_by": "isthmus"} for name in MODELS]
    return {"object": "list", "data": models}


def event(value: JsonObject) -> bytes:
    return b"data: " + _encode(value) + b"\n\n"


def _head(reply: Reply, kind: str) -> JsonObject:
    return {"id": reply.id, "object": kind, "created": CREATED, "model": reply.model}


def _chunk(reply: Reply, delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return event({**_head(reply, "chat.completion.chunk"), "choices": [choice]})


def _delta(piece: Piece) -> JsonObject:
    if piece.kind != "call":
        return {piece.kind: piece.text}
    if not piece.id:
        return {"tool_calls": [{"index": piece.index, "function": {"arguments": piece.text}}]}
    function = {"name": piece.name, "arguments": ""}
    return {"tool_calls": [{"index": piece.index, "id": piece.id, "type": "function", "function": function}]}
