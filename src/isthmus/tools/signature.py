"""A function's annotations → the JSON Schema that the model sees, and a reader that checks and coerces its arguments.

In: a function. Out: a `Signature`. Worth knowing: pydantic does the work and is loaded here, on the first `@tool`,
never by `import isthmus`. The handler gets coerced values (`"5"` → `5`, an object → your dataclass or model).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_origin, get_type_hints

from isthmus.protocol.json import JsonObject
from isthmus.tools.context import ToolContext
from isthmus.tools.docstring import read_docstring

Reader = Callable[[Mapping[str, Any]], dict[str, Any]]


class InvalidArguments(Exception):
    """The arguments do not fit the tool's schema; the message tells the model what to change."""


@dataclass(frozen=True, slots=True)
class Signature:
    description: str
    parameters: JsonObject
    read: Reader
    context: str | None
    """The parameter that takes the `ToolContext`."""


def read_signature(function: Callable[..., Any]) -> Signature:
    """Raises `TypeError` for a function that a model cannot call."""
    from pydantic import Field, create_model

    description, documented = read_docstring(function.__doc__)
    hints = _hints(function)
    context: str | None = None
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for position, (name, parameter) in enumerate(_parameters(function)):
        kind = hints.get(name, Any)
        if position == 0 and _is_context(kind):
            context = name
            continue
        _check_parameter(function, parameter)
        default = ... if parameter.default is parameter.empty else parameter.default
        # Neutral field names: a parameter may be called `schema` or `copy`, which pydantic keeps for itself.
        field = f"p{position}"
        names[field] = name
        fields[field] = (kind, Field(default, alias=name, description=documented.get(name) or None))
    model = create_model(f"{function.__name__}_arguments", __config__={"extra": "forbid"}, **fields)
    return Signature(description, _schema(model), _reader(model, names), context)


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter of a handler wants the `ToolContext`."""
    first = next(iter(_parameters(function)), None)
    return first is not None and _is_context(_hints(function).get(first[0], Any))


def clean_schema(schema: Any) -> Any:
    """The schema without the titles that pydantic adds: they say the name twice and cost tokens."""
    if isinstance(schema, dict):
        kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
        return {
            key: {name: clean_schema(inner) for name, inner in value.items()}
            if key in ("properties", "$defs") and isinstance(value, dict)
            else clean_schema(value)
            for key, value in kept.items()
        }
    return [clean_schema(one) for one in schema] if isinstance(schema, list) else schema


def explain(error: Any) -> str:
    """A pydantic error in words that a model can act on: each problem with its place."""
    lines = []
    for problem in error.errors(include_url=False, include_context=False)[:8]:
        place = ".".join(str(step) for step in problem["loc"]) or "arguments"
        given = repr(problem.get("input"))
        shown = "" if problem["type"] == "missing" else f" (given: {given if len(given) <= 80 else given[:77] + '…'})"
        lines.append(f"`{place}`: {problem['msg']}{shown}")
    return "; ".join(lines)


def _reader(model: Any, names: Mapping[str, str]) -> Reader:
    from pydantic import ValidationError

    def read(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            checked = model.model_validate(dict(arguments))
        except ValidationError as error:
            raise InvalidArguments(explain(error)) from error
        return {name: getattr(checked, field) for field, name in names.items()}

    return read


def _schema(model: Any) -> JsonObject:
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012

    schema: JsonObject = clean_schema(model.model_json_schema(by_alias=True, schema_generator=Quiet))
    schema.setdefault("properties", {})
    return schema


def _parameters(function: Callable[..., Any]) -> list[tuple[str, inspect.Parameter]]:
    found = list(inspect.signature(function).parameters.items())
    return found[1:] if found and found[0][0] == "self" else found


def _check_parameter(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise TypeError(
            f"tool `{function.__name__}`: a model cannot fill `{parameter}`; give every argument a name of its own"
        )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        name = getattr(function, "__name__", "tool")
        raise TypeError(
            f"tool `{name}`: {error}; define the types of its annotations at module level, or use `Tool.from_schema`"
        ) from error


def _is_context(kind: Any) -> bool:
    return kind is ToolContext or get_origin(kind) is ToolContext
