"""Input items as `/input_items` and conversations list them: clients' types want what requests may leave out.

In: an item as it was sent and stored. Out: the same item with its content as a list of parts, and with the fields that
the listed form always has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.protocol.json import JsonObject

_DONE: Final = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "computer_call"}
)
"""Kinds that have a `status` when they are listed; what was sent as input has ended."""
_PART_DEFAULTS: Final[Mapping[str, JsonObject]] = {
    "output_text": {"annotations": []},
    "input_image": {"detail": "auto"},
}


def listed_item(item: JsonObject) -> JsonObject:
    kind = item.get("type", "message")
    if kind != "message":
        item = {"status": "completed", **item} if kind in _DONE else item
        return {**item, "output": _parts(item["output"])} if isinstance(item.get("output"), list) else item
    spoken = item.get("role") == "assistant"
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text" if spoken else "input_text", "text": content}]
    listed = {**item, "type": "message", "content": _parts(content)}
    return {"status": "completed", **listed} if spoken else listed


def listed_in_conversation(item: JsonObject) -> JsonObject:
    """The same for an item of a conversation: whoever said it, a message has a status there, and a list as content."""
    listed = listed_item(item)
    if listed.get("type") != "message":
        return listed
    return {"status": "completed", **listed, "content": [] if listed["content"] is None else listed["content"]}


def _parts(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return [
        {**_PART_DEFAULTS.get(part.get("type", ""), {}), **part} if isinstance(part, dict) else part for part in content
    ]
