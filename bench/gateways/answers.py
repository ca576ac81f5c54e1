"""Whether an answer says what the model said: once, whole, and in the shape of its door.

In: the body of an answer, without the framing of HTTP; of a WebSocket, its frames with a line break between. Out:
nothing, or what is wrong. A gateway that is quick and wrong must not look quick.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from bench.robustness.client import TERMINAL

Door = Literal["responses", "chat", "messages", "websocket"]
Json = dict[str, Any]

ENDS: dict[Door, bytes] = {
    "responses": b'"response.completed"',
    "chat": b"data: [DONE]",
    "messages": b'"message_stop"',
    "websocket": b'"response.completed"',
}
"""What stands near the end of a stream that is over, door by door."""


def is_right(answer: bytes, door: Door, stream: bool, call: bool, expected: str) -> str:
    try:
        events = list(_events(answer, door)) if stream else [json.loads(answer)]
        read = _READ[door](events, stream, call)
    except (ValueError, KeyError, IndexError, TypeError, StopIteration) as error:
        return f"not the shape of this door: {type(error).__name__} {error}; {answer[:150]!r}"
    if read != expected:
        return f"says {len(read)} characters of {len(expected)}: {read[:60]!r}"
    return ""


def _events(answer: bytes, door: Door) -> Iterator[Json]:
    for line in answer.splitlines():
        if door != "websocket" and not line.startswith(b"data:"):
            continue
        data = line.removeprefix(b"data:").strip()
        if data and data != b"[DONE]":
            yield json.loads(data)


def _responses(events: list[Json], stream: bool, call: bool) -> str:
    if not stream:
        return _whole_response(events[0], call)
    kind = "response.function_call_arguments.delta" if call else "response.output_text.delta"
    told = "".join(event["delta"] for event in events if event["type"] == kind)
    ends = [event for event in events if event["type"] in TERMINAL]
    if len(ends) != 1 or ends[0]["type"] != "response.completed":
        raise ValueError(f"ends with {[event['type'] for event in ends]}")
    folded = _whole_response(ends[0]["response"], call)
    if folded != told:
        raise ValueError(f"its end says {len(folded)} characters, its deltas {len(told)}")
    return told


def _whole_response(response: Json, call: bool) -> str:
    if response["status"] != "completed":
        raise ValueError(f"status {response['status']}")
    wanted = "function_call" if call else "message"
    item = next(item for item in response["output"] if item["type"] == wanted)
    return str(item["arguments"] if call else "".join(part["text"] for part in item["content"]))


def _chat(events: list[Json], stream: bool, call: bool) -> str:
    told, reasons = "", []
    for event in events:
        for choice in event["choices"]:
            message = choice["delta" if stream else "message"]
            calls = message.get("tool_calls") or ()
            told += "".join(each["function"].get("arguments") or "" for each in calls) if call else ""
            told += "" if call else message.get("content") or ""
            reasons += [choice["finish_reason"]] if choice.get("finish_reason") else []
    if len(reasons) != 1:
        raise ValueError(f"finished {len(reasons)} times")
    return told


def _messages(events: list[Json], stream: bool, call: bool) -> str:
    if not stream:
        return "".join(block["text"] for block in events[0]["content"] if block["type"] == "text")
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    if [event["type"] for event in events].count("message_stop") != 1:
        raise ValueError("not one `message_stop`")
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text_delta")


_READ = {"responses": _responses, "chat": _chat, "messages": _messages, "websocket": _responses}
