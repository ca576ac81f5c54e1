"""A tool's parameters as a provider will take them: an object at the root, fitted by `project_schema`."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from isthmus.bridge.projection import DEFINITIONS, project_schema
from isthmus.protocol.json import JsonObject

ROOT_WRAPPED: Final = "(root)"
"""Stands in the list of dropped keywords for a root that had to be wrapped into an object."""


def project_parameters(schema: Any, drop_keywords: Set[str], inline_refs: bool) -> tuple[JsonObject, tuple[str, ...]]:
    """The schema to send, and the keywords that it lost, in the order in which they were met."""
    root, wrapped = _as_object(schema)
    document = schema if isinstance(schema, dict) else root
    projected, dropped = project_schema(root, drop_keywords, inline_refs, document=document)
    return projected, (ROOT_WRAPPED, *dropped) if wrapped else dropped


def _as_object(schema: Any) -> tuple[JsonObject, bool]:
    """Function arguments are an object: say so where the client did not."""
    if not isinstance(schema, dict) or not schema:
        return {"type": "object", "properties": {}}, False
    kind = schema.get("type")
    if kind == "object":
        return (schema if _says_more(schema) else {**schema, "properties": {}}), False
    if kind is None or (isinstance(kind, list) and "object" in kind):
        root = {**schema, "type": "object"}
        return (root if _says_more(schema) else {**root, "properties": {}}), False
    definitions = {key: schema[key] for key in schema if key in DEFINITIONS}
    inner = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    return {"type": "object", "properties": {"value": inner}, "required": ["value"], **definitions}, True


def _says_more(schema: JsonObject) -> bool:
    return any(key in schema for key in ("properties", "$ref", "anyOf", "oneOf", "allOf", "patternProperties"))
