"""The words that our wire schemas are written in.

Objects are closed: a field that is not listed is a defect, because nobody meant to send it. A required
field is always there; an optional one is there or not, and never `null` unless its schema says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WORD: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
ANY: Schema = {}
ITEM_ID: Schema = {"type": "string", "pattern": "^[a-z]+_."}


def shape(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """A closed object."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def open_shape(required: Mapping[str, Schema]) -> Schema:
    """An object that carries someone else's words (an echoed tool) beside the fields we answer for."""
    return {"type": "object", "properties": dict(required), "required": list(required)}


def const(value: str) -> Schema:
    return {"const": value}


def one_of(*words: str) -> Schema:
    return {"enum": list(words)}


def nullable(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_type(shapes: Mapping[str, Schema]) -> Schema:
    """A union told apart by `type`: only the schema of that type speaks, so its complaint is to the point."""
    rules = [
        {"if": {"properties": {"type": {"const": kind}}, "required": ["type"]}, "then": schema}
        for kind, schema in shapes.items()
    ]
    return {"type": "object", "required": ["type"], "properties": {"type": {"enum": list(shapes)}}, "allOf": rules}


def complaints(validator: jsonschema_rs.Validator, value: Any) -> list[str]:
    """What is wrong, each with its place: `output[0].content[1]: "annotations" is a required property`."""
    return [f"{_place(error.instance_path)}{error.message[:400]}" for error in validator.iter_errors(value)]


def _place(path: list[str | int]) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return f"{place}: " if place else ""
