"""`output_type=` → the format that the request asks for, and the reader of the final answer.

In: a pydantic model, a dataclass, any type that pydantic knows, or a JSON Schema. Out: an `OutputFormat`. The format
is strict, so it is the bridge's own contract that checks the answer and asks again; what is read here fits already,
except for rules that no schema can say (your own validators): those cost one more question, see `run`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from isthmus.bridge.contract.validators import validator_for
from isthmus.errors import OutputInvalid
from isthmus.protocol.json import JsonObject
from isthmus.tools.strict import strict_schema

_WRAPPED: Final = "result"
"""Formats must be objects at the top: anything else travels as the one field of one."""


@dataclass(frozen=True, slots=True)
class OutputFormat:
    name: str
    schema: JsonObject
    read: Callable[[str], Any]
    """Text → value; raises `OutputInvalid` with words that the model can act on."""

    def format(self) -> JsonObject:
        return {"type": "json_schema", "name": self.name, "schema": self.schema, "strict": True}


def plan_output(output_type: Any) -> OutputFormat | None:
    """`None` (or `str`) asks for plain text."""
    if output_type is None or output_type is str:
        return None
    if isinstance(output_type, Mapping):
        schema = dict(output_type)
        return OutputFormat(_name(str(schema.get("title") or "answer")), schema, _schema_reader(schema))
    return _typed(output_type)


def _typed(output_type: Any) -> OutputFormat:
    from pydantic import TypeAdapter

    from isthmus.tools.signature import clean_schema

    adapter: TypeAdapter[Any] = TypeAdapter(output_type)
    schema = strict_schema(clean_schema(adapter.json_schema()))
    wrapped = schema.get("type") != "object"
    if wrapped:
        shared = schema.pop("$defs", None)
        schema = {
            "type": "object",
            "properties": {_WRAPPED: schema},
            "required": [_WRAPPED],
            "additionalProperties": False,
            **({"$defs": shared} if shared else {}),
        }
    name = _name(getattr(output_type, "__name__", "answer"))
    return OutputFormat(name, schema, _typed_reader(adapter, wrapped))


def _typed_reader(adapter: Any, wrapped: bool) -> Callable[[str], Any]:
    from pydantic import ValidationError

    from isthmus.tools.signature import explain

    def read(text: str) -> Any:
        value = _decode(text)
        if wrapped and isinstance(value, dict):
            value = value.get(_WRAPPED)
        try:
            # As JSON, so that dates, sets and tuples are read from what JSON has for them.
            return adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            raise OutputInvalid(f"the answer does not fit: {explain(error)}") from error

    return read


def _schema_reader(schema: JsonObject) -> Callable[[str], Any]:
    validator = validator_for(schema)

    def read(text: str) -> Any:
        value = _decode(text)
        for problem in validator.iter_errors(value):
            raise OutputInvalid(f"the answer does not fit the schema: {problem.message[:300]}")
        return value

    return read


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OutputInvalid(f"the answer is not valid JSON: {error}") from error


def _name(words: str) -> str:
    kept = "".join(one if one.isascii() and (one.isalnum() or one in "_-") else "_" for one in words)
    return kept[:64] or "answer"
