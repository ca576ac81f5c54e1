"""Pieces of JSON Schema that the stand-ins of tools are written with."""

from __future__ import annotations

from typing import Any

from isthmus.protocol.json import JsonObject


def closed(properties: JsonObject, *also_required: str) -> JsonObject:
    """An object of these properties and no others; the first is always required."""
    required = [next(iter(properties)), *also_required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def field(kind: str, description: str, **limits: Any) -> JsonObject:
    return {"type": kind, **limits, "description": description}
