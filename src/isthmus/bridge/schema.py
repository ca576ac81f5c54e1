"""A JSON Schema as a provider will take it: keywords it refuses move into the descriptions.

In: the client's schema and the refused keywords. Out: a new schema, and which keywords had to go. The
client's own schema stays what answers are checked against; the projection is only what the model is shown.
The walk knows where schemas sit: a property that happens to be *named* `minimum` is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.protocol.json import JsonObject

_OF_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that hold schemas by name."""
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_SINGLE: Final = frozenset(
    {
        "items",
        "additionalItems",
        "additionalProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "contentSchema",
    }
)
_UNSPOKEN: Final = frozenset({"$schema", "$id", "$comment", "$anchor", "description"})
"""Dropped without a word: they say nothing about the value."""


def project_schema(schema: Mapping[str, Any], refused: frozenset[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """The schema without the refused keywords, and the names of those that were really there, in order."""
    found: dict[str, None] = {}
    projected = _project(schema, refused, found)
    return projected, tuple(found)


def _project(schema: Mapping[str, Any], refused: frozenset[str], found: dict[str, None]) -> JsonObject:
    kept: JsonObject = {}
    notes: list[str] = []
    for keyword, value in schema.items():
        if keyword in refused:
            found[keyword] = None
            if keyword not in _UNSPOKEN:
                notes.append(f"{keyword}: {msgspec.json.encode(value).decode()}")
        elif keyword in _OF_SCHEMAS and isinstance(value, Mapping):
            kept[keyword] = {name: _inner(inner, refused, found) for name, inner in value.items()}
        elif keyword in _LISTS and isinstance(value, list):
            kept[keyword] = [_inner(inner, refused, found) for inner in value]
        elif keyword in _SINGLE:
            kept[keyword] = _inner(value, refused, found)
        else:
            kept[keyword] = value
    if notes and "description" not in refused:
        told = schema.get("description")
        words = f"({'; '.join(notes)})"
        kept["description"] = f"{told} {words}" if isinstance(told, str) and told else words
    return kept


def _inner(value: Any, refused: frozenset[str], found: dict[str, None]) -> Any:
    return _project(value, refused, found) if isinstance(value, Mapping) else value
