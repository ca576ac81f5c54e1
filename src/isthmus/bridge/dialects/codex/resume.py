"""Where a conversation stands, as a fingerprint: how a request finds the thread that already knows its past.

A thread is only ever continued by a request whose visible past is exactly what that thread has seen, so it can be
neither mixed up nor reached by somebody who does not already hold the whole conversation. Anything else (an edited
message, other tools, a branch) begins a new thread with the history it brings along: dearer, never wrong. Reasoning
does not count (the thread remembers its own), nor does how the assistant's words were cut into messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.bridge.dialects.codex.write import spoken_item, user_item
from isthmus.bridge.history.normalise import NO_OUTPUT
from isthmus.protocol.json import JsonObject

# What a thread is born with; and what a turn is begun with, and keeps while it waits for tools.
_THREAD_FIELDS: Final = ("model", "baseInstructions", "dynamicTools", "toolNames", "config")
_TURN_FIELDS: Final = ("effort", "summary", "outputSchema")


class Outputs(NamedTuple):
    """A request that only answers tool calls: the key of the turn that waits for them, and the answers."""

    key: str
    outputs: Mapping[str, str | list[JsonObject]]


class Continuation(NamedTuple):
    """A request that goes on after the assistant's last words: their key, and what is new before the input."""

    key: str
    news: tuple[JsonObject, ...]


def read_outputs(body: JsonObject) -> Outputs | None:
    """The answers at the very end of the history, if nothing else is new and each call has its own. How closely to look
    at an image can only be said in a history: a tool's reply has no place for it."""
    history = _visible(body.get("history", ()))
    end = _skip_back(history, len(history), "function_call_output")
    begin = _skip_back(history, end, "function_call")
    outputs = {item["call_id"]: item["output"] for item in history[end:]}
    asked = {item["call_id"] for item in history[begin:end]}
    if body["input"] or not outputs or set(outputs) != asked or NO_OUTPUT in outputs.values():
        return None
    if any("detail" in part for output in outputs.values() if isinstance(output, list) for part in output):
        return None
    if begin and _is_speech(history[begin - 1]):
        begin -= 1
    return Outputs(waiting_key(history[:begin], list(outputs)), outputs)


def read_continuation(body: JsonObject) -> Continuation | None:
    """What follows the assistant's last words; `None` where it last called tools, or never spoke."""
    history = _visible(body.get("history", ()))
    for index in range(len(history) - 1, -1, -1):
        if _is_speech(history[index]):
            return Continuation(_digest("said", history[: index + 1]), tuple(history[index + 1 :]))
        if history[index]["type"] != "message":
            return None
    return None


def waiting_key(past: Sequence[JsonObject], call_ids: Sequence[str]) -> str:
    """A turn that saw `past` and waits for the outputs of these calls."""
    return _digest("waits", _visible(past), sorted(call_ids))


def past_of(body: JsonObject) -> list[JsonObject]:
    """Everything that the model sees before it answers this body."""
    return [*body.get("history", ()), *([user_item(body["input"])] if body["input"] else ())]


def said_key(body: JsonObject, text: str) -> str:
    """A thread that saw this body's past and answered it with `text`."""
    return _digest("said", _visible([*past_of(body), spoken_item(text)]))


def thread_head(body: JsonObject) -> str:
    """Two bodies with the same head can share a thread."""
    return _digest(*(body.get(name) for name in _THREAD_FIELDS))


def turn_head(body: JsonObject) -> str:
    """Two bodies with the same head can share a turn."""
    return _digest(*(body.get(name) for name in (*_THREAD_FIELDS, *_TURN_FIELDS)))


def _visible(items: Sequence[JsonObject]) -> list[JsonObject]:
    """The items without reasoning, and words that the assistant spoke in a row as one message."""
    seen: list[JsonObject] = []
    for item in items:
        if _is_speech(item):
            before = _text(seen.pop()) if seen and _is_speech(seen[-1]) else ""
            seen.append(spoken_item(before + _text(item)))
        elif item["type"] != "reasoning":
            seen.append(item)
    return seen


def _text(item: JsonObject) -> str:
    return "".join(part["text"] for part in item["content"])


def _skip_back(items: Sequence[JsonObject], end: int, kind: str) -> int:
    while end and items[end - 1]["type"] == kind:
        end -= 1
    return end


def _is_speech(item: JsonObject) -> bool:
    return item["type"] == "message" and item.get("role") == "assistant"


def _digest(*values: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()
