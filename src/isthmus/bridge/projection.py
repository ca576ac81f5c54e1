"""A JSON Schema fitted to what a provider accepts; the client's own schema is never touched.

In: a schema, the keywords that the provider refuses, and whether `$ref` must go. Out: the schema to send,
and the names of the keywords that were taken out. What is taken out is not lost: it moves into the
`description` beside it, where the model can still read it; answers are checked against the original.
Inlining stops at recursion and at a fixed budget, so that a small schema of nested references cannot grow
into a huge one. The walk knows where schemas sit: a property *named* `minimum` is left alone.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

import msgspec

from isthmus.bridge.bounds import DEFINITIONS, REFERENCES, follow_pointer
from isthmus.protocol.json import JsonObject

ROOT_WRAPPED: Final = "(root)"
"""Stands in the list of dropped keywords for a root that had to be wrapped into an object."""
_SCHEMA: Final = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items"),
        *("not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_SCHEMA_LIST: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_SCHEMA_MAP: Final = frozenset({*DEFINITIONS, "dependentSchemas", "patternProperties", "properties"})
# Keywords whose loss tells the model nothing.
_SILENT: Final = frozenset({"$schema", "$id", "$comment", "$anchor", "title", "additionalProperties", *DEFINITIONS})

_NEAR: Final = {"oneOf": "anyOf", "const": "enum"}  # keywords that say (nearly) the same
_SAYS_MORE: Final = ("properties", "$ref", "anyOf", "oneOf", "allOf", "patternProperties")
_UNIONS: Final = frozenset({"oneOf", "anyOf", "allOf"})
_MAX_NOTE: Final = 300
_MAX_INLINED: Final = 5_000
_MAX_DEPTH: Final = 48


def project_schema(
    schema: JsonObject, refused: Set[str], inline_refs: bool = False, *, document: JsonObject | None = None
) -> tuple[JsonObject, tuple[str, ...]]:
    """The schema to send, and the keywords that it lost, in the order in which they were met. `document` is what `#/…`
    pointers point into, where that is not the schema itself."""
    inline = inline_refs or "$ref" in refused or not refused.isdisjoint(DEFINITIONS)
    if not refused and not inline:
        return schema, ()
    walk = _Walk(schema if document is None else document, refused, inline)
    projected: JsonObject = walk.schema(schema, 0, ())
    return projected, tuple(walk.dropped)


def project_parameters(
    schema: Any, refused: Set[str], inline_refs: bool, plain_root: bool = False
) -> tuple[JsonObject, tuple[str, ...]]:
    """The same for a tool's parameters, which are an object at their root; with `plain_root`, no choice of several."""
    root, wrapped = _as_object(schema)
    document = schema if isinstance(schema, dict) else root
    projected, dropped = project_schema(root, refused, inline_refs, document=document)
    if plain_root and not _UNIONS.isdisjoint(projected):
        projected, unions = _without_unions(projected)
        dropped = (*dropped, *unions)
    return projected, (ROOT_WRAPPED, *dropped) if wrapped else dropped


def _without_unions(root: JsonObject) -> tuple[JsonObject, list[str]]:
    """All properties that the branches name, none of them required; what the branches ask for goes into words."""
    unions = [key for key in root if key in _UNIONS]
    given = [root[key] for key in unions if isinstance(root[key], list)]
    branches = [one for union in given for one in union if isinstance(one, dict)]
    named = [one["properties"] for one in (*reversed(branches), root) if isinstance(one.get("properties"), dict)]
    properties = {name: value for each in named for name, value in each.items()}
    rest = {key: value for key, value in root.items() if key not in _UNIONS}
    return _with_note({**rest, "properties": properties}, "; ".join(_note(key, root[key]) for key in unions)), unions


def close_objects(schema: Any, depth: int = 0) -> Any:
    """The same schema, with `additionalProperties: false` wherever an object says nothing of further properties: what
    Anthropic insists on, and what a strict schema means anyway."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema
    closed = {key: _close_inside(key, value, depth + 1) for key, value in schema.items()}
    is_object = "properties" in schema or schema.get("type") == "object"
    return {**closed, "additionalProperties": False} if is_object and "additionalProperties" not in schema else closed


def _close_inside(key: str, value: Any, depth: int) -> Any:
    if isinstance(value, list) and key in _SCHEMA_LIST:
        return [close_objects(one, depth) for one in value]
    if isinstance(value, dict) and key in _SCHEMA_MAP:
        return {name: close_objects(one, depth) for name, one in value.items()}
    return close_objects(value, depth) if key in _SCHEMA else value


def _as_object(schema: Any) -> tuple[JsonObject, bool]:
    """Function arguments are an object: say so where the client did not."""
    if not isinstance(schema, dict) or not schema:
        return {"type": "object", "properties": {}}, False
    kind = schema.get("type")
    if kind is None or kind == "object" or (isinstance(kind, list) and "object" in kind):
        root = schema if kind == "object" else {**schema, "type": "object"}
        says_more = any(key in schema for key in _SAYS_MORE)
        return root if says_more else {**root, "properties": {}}, False
    definitions = {key: schema[key] for key in schema if key in DEFINITIONS}
    inner = {key: value for key, value in schema.items() if key not in DEFINITIONS}
    return {"type": "object", "properties": {"value": inner}, "required": ["value"], **definitions}, True


class _Walk(msgspec.Struct):
    document: JsonObject
    drop: Set[str]
    inline: bool
    dropped: dict[str, None] = {}
    inlined: int = 0

    def schema(self, value: Any, depth: int, open_refs: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            return value
        if open_refs:
            self.inlined += 1
        if self.inline:
            reference = next((value[key] for key in REFERENCES if key in value), None)
            if isinstance(reference, str):
                return self._inline(value, reference, depth, open_refs)
        return self._keywords(value, depth, open_refs)

    def _inline(self, value: JsonObject, reference: str, depth: int, open_refs: tuple[str, ...]) -> Any:
        beside = {key: item for key, item in value.items() if key not in REFERENCES}
        target = self.document if reference == "#" else None
        if reference.startswith("#/"):
            target = follow_pointer(self.document, reference[2:])
        name = reference.rsplit("/", 1)[-1] or "the whole schema"
        if not isinstance(target, dict):  # an anchor, a remote document or a dead end
            return self._keywords(_with_note(beside, f"see {reference}"), depth, open_refs)
        if reference in open_refs or depth > _MAX_DEPTH or self.inlined > _MAX_INLINED:
            kind = {"type": target["type"]} if isinstance(target.get("type"), str) else {}
            return self._keywords(_with_note({**kind, **beside}, f"same shape as {name}"), depth, open_refs)
        return self.schema({**target, **beside}, depth + 1, (*open_refs, reference))

    def _keywords(self, value: JsonObject, depth: int, open_refs: tuple[str, ...]) -> JsonObject:
        out: JsonObject = {}
        notes: list[str] = []
        for key, item in value.items():
            if self.inline and key in DEFINITIONS:
                continue
            if key in self.drop and key != "description":
                self.dropped.setdefault(key)
                near = _NEAR.get(key)
                if near and near not in self.drop and near not in value:
                    out[near] = [item] if key == "const" else self._children(key, item, depth, open_refs)
                elif key not in _SILENT:
                    notes.append(_note(key, self._children(key, item, depth, open_refs)))
            else:
                out[key] = self._children(key, item, depth, open_refs)
        return _with_note(out, "; ".join(notes)) if notes else out

    def _children(self, key: str, item: Any, depth: int, open_refs: tuple[str, ...]) -> Any:
        if isinstance(item, list) and key in _SCHEMA_LIST:
            return [self.schema(child, depth + 1, open_refs) for child in item]
        if isinstance(item, dict) and key in _SCHEMA_MAP:
            return {name: self.schema(child, depth + 1, open_refs) for name, child in item.items()}
        return self.schema(item, depth + 1, open_refs) if key in _SCHEMA else item


def _note(key: str, value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return f"{key}: {text}" if len(text) <= _MAX_NOTE else f"{key}: {text[:_MAX_NOTE]}…"


def _with_note(schema: JsonObject, note: str) -> JsonObject:
    own = schema.get("description")
    return {**schema, "description": f"{own} ({note})" if own else f"({note})"}
