"""Messages of a stored chat completion as they are listed."""

from __future__ import annotations

from typing import Final

from isthmus.protocol.json import JsonObject

_PARTS: Final = ("text", "image_url")
"""Kinds of parts that the listed form knows."""


def listed_message(id: str, index: int, message: JsonObject) -> JsonObject:
    """The message that was sent, under an id of its own; content in parts is told as its text, too."""
    content = message.get("content")
    if not isinstance(content, list):
        return {**message, "id": f"{id}-{index}", "content": content, "content_parts": None}
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in _PARTS]
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return {
        **message,
        "id": f"{id}-{index}",
        "content": "\n".join(texts) if texts else None,
        "content_parts": parts,
    }
