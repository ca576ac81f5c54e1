"""Messages as plain JSON objects and back: to keep a conversation, or a run that waits for approval.

`load_messages(dump_messages(messages)) == messages`, whatever the messages hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.tools.calls import CallError, ToolCall
from isthmus.tools.messages import (
    CodePart,
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

_KINDS: Final[Mapping[str, type[Any]]] = {
    "text": TextPart,
    "image": ImagePart,
    "document": DocumentPart,
    "code": CodePart,
    "thinking": ThinkingPart,
    "refusal": RefusalPart,
    "tool_call": ToolCallPart,
    "tool_result": ToolResultPart,
    "opaque": OpaquePart,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


def dump_messages(messages: Iterable[Message]) -> list[JsonObject]:
    """Plain objects, ready for `json.dumps` (as long as your own `metadata` is)."""
    return [
        {
            "role": message.role,
            "content": [_dump_part(part) for part in message.content],
            **({"metadata": dict(message.metadata)} if message.metadata else {}),
        }
        for message in messages
    ]


def load_messages(saved: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages that `dump_messages` wrote."""
    return [
        Message(one["role"], tuple(_load_part(part) for part in one["content"]), one.get("metadata") or {})
        for one in saved
    ]


def _dump_part(part: Part) -> JsonObject:
    name = _NAMES[type(part)]
    match part:
        case ToolCallPart(call):
            shape: JsonObject = {"type": name, "id": call.id, "name": call.name, "arguments": call.raw_arguments}
            if call.arguments is not None:
                shape["value"] = dict(call.arguments)
            if call.error is not None:
                shape["error"] = {"code": call.error.code, "message": call.error.message}
            if call.provider is not None:
                shape["provider"] = call.provider
            return {**shape, "extra": dict(call.extra)} if call.extra else shape
        case ToolResultPart(call_id, tool, content, status):
            inner = [_dump_part(one) for one in content]
            return {"type": name, "call_id": call_id, "name": tool, "status": status, "content": inner}
        case _:
            return {"type": name, **{one.name: _plain(getattr(part, one.name)) for one in fields(part)}}


def _load_part(saved: Mapping[str, Any]) -> Part:
    kind = _KINDS.get(saved["type"])
    if kind is None:
        raise RequestRefused(f"a saved message holds a part of type `{saved['type']}`, which is not known")
    if kind is ToolCallPart:
        error = CallError(**saved["error"]) if "error" in saved else None
        call = ToolCall(
            saved["id"],
            saved["name"],
            saved.get("value"),
            saved["arguments"],
            error,
            saved.get("provider"),
            saved.get("extra") or {},
        )
        return ToolCallPart(call)
    if kind is ToolResultPart:
        inner = tuple(_load_part(one) for one in saved["content"])
        return ToolResultPart(saved["call_id"], saved["name"], inner, saved["status"])
    given = {key: value for key, value in saved.items() if key != "type"}
    if kind is TextPart:
        given["annotations"] = tuple(given.get("annotations") or ())
    part: Part = kind(**given)
    return part


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
