"""An answer that is not what the model said is found, in every door: who is quick and wrong has no figure."""

from __future__ import annotations

import json

import pytest
from bench.gateways.answers import Door, is_right
from bench.gateways.frames import frame, unframed

TEXT = "Token 000 is small, Token 001 is small, "


def response(text: str, status: str = "completed") -> dict[str, object]:
    part = {"type": "output_text", "text": text}
    return {"status": status, "output": [{"type": "message", "content": [part]}]}


def sse(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def responses_stream(*deltas: str, end: str = "response.completed", whole: str = TEXT) -> bytes:
    told = [{"type": "response.output_text.delta", "delta": delta} for delta in deltas]
    return sse(*told, {"type": end, "response": response(whole)})


def chat_stream(*deltas: str, reason: str | None = "stop") -> bytes:
    chunks = [{"choices": [{"delta": {"content": delta}, "finish_reason": None}]} for delta in deltas]
    return sse(*chunks, {"choices": [{"delta": {}, "finish_reason": reason}]}) + b"data: [DONE]\n\n"


def messages_stream(*deltas: str, stops: int = 1) -> bytes:
    told = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": delta}} for delta in deltas]
    return sse(*told, *[{"type": "message_stop"}] * stops)


RIGHT: list[tuple[Door, bool, bytes]] = [
    ("responses", False, json.dumps(response(TEXT)).encode()),
    ("responses", True, responses_stream(TEXT[:20], TEXT[20:])),
    ("chat", False, json.dumps({"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]}).encode()),
    ("chat", True, chat_stream(TEXT[:20], TEXT[20:])),
    ("messages", False, json.dumps({"content": [{"type": "text", "text": TEXT}]}).encode()),
    ("messages", True, messages_stream(TEXT[:20], TEXT[20:])),
    ("websocket", True, responses_stream(TEXT).replace(b"data: ", b"").replace(b"\n\n", b"\n")),
]
WRONG: list[tuple[Door, bool, bytes]] = [
    ("responses", False, json.dumps(response(TEXT[:-2])).encode()),
    ("responses", False, json.dumps(response(TEXT, "incomplete")).encode()),
    ("responses", False, b'{"error": {"message": "no"}}'),
    ("responses", True, responses_stream(TEXT[:20], TEXT[21:])),
    ("responses", True, responses_stream(TEXT, end="response.failed")),
    ("responses", True, responses_stream(TEXT, whole="")),
    ("responses", True, responses_stream(TEXT) + responses_stream(TEXT)),
    ("chat", True, chat_stream(TEXT, reason=None)),
    ("chat", True, chat_stream(TEXT, TEXT)),
    ("messages", True, messages_stream(TEXT, stops=0)),
    ("messages", False, b'{"content": []}'),
    ("websocket", True, b'{"type": "error"}'),
]


@pytest.mark.parametrize(("door", "stream", "answer"), RIGHT)
def test_what_the_model_said_is_right(door: Door, stream: bool, answer: bytes) -> None:
    assert is_right(answer, door, stream, False, TEXT) == ""


@pytest.mark.parametrize(("door", "stream", "answer"), WRONG)
def test_anything_else_is_wrong(door: Door, stream: bool, answer: bytes) -> None:
    assert is_right(answer, door, stream, False, TEXT) != ""


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_frames_of_every_size_are_read_and_a_cut_one_is_left(size: int) -> None:
    def told(text: bytes) -> bytes:  # a server's frames have no mask
        sent = frame(text)
        length = 2 + (0 if len(text) < 126 else 2 if len(text) < 65536 else 8)
        return sent[:1] + bytes([sent[1] & 0x7F]) + sent[2:length] + text

    one, two = told(b"x" * size), told(b"second")
    assert unframed(one + two) == ([b"x" * size, b"second"], b"")
    assert unframed(one + two[:3]) == ([b"x" * size], two[:3])
