"""Web citations as vendors report them → the shape that Responses clients read. Odd values never raise."""

from __future__ import annotations

from typing import Any

from isthmus.protocol.json import JsonObject


def read_citation(source: JsonObject) -> JsonObject:
    """A `url_citation` with all of its fields, whatever the vendor left out."""
    return {
        "type": "url_citation",
        "url": str(source.get("url") or ""),
        "title": str(source.get("title") or ""),
        "start_index": _position(source.get("start_index")),
        "end_index": _position(source.get("end_index")),
    }


def _position(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
