"""A schema as strict providers want it: every object closed, every property required.

In: a JSON Schema. Out: a copy. A property that had a default or was optional must now be given; that is what
"strict" means upstream, and the model fills it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.protocol.json import JsonObject


def strict_schema(schema: Mapping[str, Any]) -> JsonObject:
    closed: JsonObject = _close(schema)
    return closed


def _close(node: Any) -> Any:
    if isinstance(node, list):
        return [_close(one) for one in node]
    if not isinstance(node, Mapping):
        return node
    made: JsonObject = {}
    for key, value in node.items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            made[key] = {name: _close(inner) for name, inner in value.items()}
        elif key not in ("default", "const", "enum", "examples"):
            made[key] = _close(value)
        elif key != "default":
            made[key] = value
    properties = made.get("properties")
    if made.get("type") == "object" and "additionalProperties" not in made:
        made["additionalProperties"] = False
    if isinstance(properties, dict) and made.get("additionalProperties") is False:
        made["required"] = list(properties)
    return made
