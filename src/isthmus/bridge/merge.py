"""Upstream bodies are made of fragments: dotted paths become nested objects, fragments merge into one body.

In: mappings. Out: new objects; nothing that is handed in is ever changed or shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.protocol.json import JsonObject


def deep_merge(*fragments: Mapping[str, Any]) -> JsonObject:
    """All fragments as one object: nested objects are merged, anything else is won by the later fragment."""
    merged: JsonObject = {}
    for fragment in fragments:
        for name, value in fragment.items():
            if isinstance(value, dict):
                known = merged.get(name)
                merged[name] = deep_merge(known, value) if isinstance(known, dict) else deep_merge(value)
            else:
                merged[name] = value
    return merged


def nest(path: str, value: Any) -> JsonObject:
    """`nest("reasoning.effort", "low")` → `{"reasoning": {"effort": "low"}}`."""
    *outer, name = path.split(".")
    fragment: JsonObject = {name: value}
    for parent in reversed(outer):
        fragment = {parent: fragment}
    return fragment


def contains(body: Mapping[str, Any], fragment: Mapping[str, Any]) -> bool:
    """Whether `body` says everything that `fragment` says."""
    return deep_merge(body, fragment) == body
