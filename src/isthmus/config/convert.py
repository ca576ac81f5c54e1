"""Plain values → the frozen structs of `schema`, with every problem found, not only the first.

In: merged values, and the paths whose text stands for another type (they came from the environment, a flag or
a `${VAR}`). Out: a struct, and `Problem`s. A value that cannot be used is reported and its default takes its place,
so that the rest can be checked as well.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from isthmus.bridge.resolve import nearest_name
from isthmus.config.problems import KeyPath, Problem, dotted
from isthmus.config.quantities import parse_duration, parse_size
from isthmus.config.redact import redact, redact_query
from isthmus.config.schema import DURATION, SIZE
from isthmus.config.toml_text import toml_value

S = TypeVar("S", bound=msgspec.Struct)


def convert(
    cls: type[S], values: object, problems: list[Problem], *, lax: Collection[KeyPath] = (), path: KeyPath = ()
) -> S:
    """One section and all below it; `lax` paths may spell numbers, truth values and lists as text."""
    if not isinstance(values, Mapping):
        problems.append(
            Problem(path, f"must be a table, not {_kind(values)}", f"write `[{dotted(path)}]` above its keys")
        )
        return cls()
    fields = {field.name: field.type for field in msgspec.structs.fields(cls)}
    made: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        if key not in fields:
            problems.append(_unknown(here, list(fields)))
            continue
        try:
            made[key] = _convert_value(fields[key], value, problems, lax, here)
        except ValueError as error:
            shown = "" if here in lax else f", not {_show(here, value)}"
            problems.append(Problem(here, f"must be {error}{shown}", _fix(key, getattr(cls(), key))))
    return cls(**made)


def _convert_value(kind: Any, value: Any, problems: list[Problem], lax: Collection[KeyPath], path: KeyPath) -> Any:
    """One value; `ValueError` with what was expected when it does not fit."""
    if struct := _struct(kind):
        return convert(struct, value, problems, lax=lax, path=path)
    if get_origin(kind) is list and (struct := _struct(get_args(kind)[0])):
        if not isinstance(value, list):
            raise ValueError("a list of tables")
        return [
            convert(struct, entry, problems, lax=lax, path=(*path[:-1], f"{path[-1]}[{index}]"))
            for index, entry in enumerate(value)
        ]
    if get_origin(kind) is not None and issubclass(_origin_class(kind), Mapping):
        return _convert_table(kind, value, problems, lax, path)
    parser = _quantity_parser(kind)
    if parser is not None and isinstance(value, str):
        value = parser(value)
    elif get_origin(kind) is list and path in lax and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, kind, strict=path not in lax)
    except msgspec.ValidationError as error:
        raise ValueError(describe_type(kind) + _suggest_word(kind, value)) from error


def _convert_table(kind: Any, value: Any, problems: list[Problem], lax: Collection[KeyPath], path: KeyPath) -> Any:
    """A table whose keys the user names: each entry is checked by itself."""
    if not isinstance(value, Mapping):
        raise ValueError(describe_type(kind))
    inner = get_args(kind)[1]
    made: dict[str, Any] = {}
    for key, entry in value.items():
        here = (*path, key)
        try:
            made[key] = _convert_value(inner, entry, problems, lax, here)
        except ValueError as error:
            shown = "" if here in lax else f", not {_show(here, entry)}"
            problems.append(Problem(here, f"must be {error}{shown}", "correct the value, or remove the entry"))
    return made


def describe_type(kind: Any) -> str:
    """What fits, in words: "an integer from 0 to 65535"."""
    metas = [meta for meta in getattr(kind, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    base = get_args(kind)[0] if metas else kind
    quantity = next((meta.extra["quantity"] for meta in metas if meta.extra), None)
    if quantity == SIZE:
        return 'a size, such as 1048576, "10MB" or "10MiB"'
    if quantity == DURATION:
        above = " above 0" if any(meta.gt is not None for meta in metas) else ""
        return f'a duration{above}, such as 30, "30s" or "5m"'
    if get_origin(base) in (types.UnionType, typing.Union):
        return " or ".join(describe_type(part) for part in get_args(base) if part is not type(None))
    if get_origin(base) is Literal:
        return "one of " + ", ".join(f'"{word}"' for word in get_args(base))
    if get_origin(base) is list:
        return f"a list of {_PLURALS.get(get_args(base)[0], 'tables')}"
    if get_origin(base) is not None:
        return f"a table of {_PLURALS.get(get_args(base)[1], 'tables')}"
    return _NAMES.get(base, "a table") + _bounds(metas)


_NAMES: dict[Any, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_PLURALS: dict[Any, str] = {str: "strings", int: "integers", list[str]: "lists of strings"}


def _bounds(metas: list[msgspec.Meta]) -> str:
    for meta in metas:
        if meta.ge is not None and meta.le is not None:
            return f" from {meta.ge} to {meta.le}"
        if meta.ge is not None:
            return f" of at least {meta.ge}"
        if meta.min_length:
            return " that is not empty"
    return ""


def _quantity_parser(kind: Any) -> Callable[[str], float] | None:
    for meta in getattr(kind, "__metadata__", ()):
        quantity = (meta.extra or {}).get("quantity")
        if quantity is not None:
            return parse_duration if quantity == DURATION else parse_size
    return None


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _origin_class(kind: Any) -> type:
    origin = get_origin(kind)
    return origin if isinstance(origin, type) else object


def _unknown(path: KeyPath, known: list[str]) -> Problem:
    near = nearest_name(path[-1], known)
    where = f"`[{dotted(path[:-1])}]`" if path[:-1] else "the top level"
    fix = (
        f"did you mean `{dotted((*path[:-1], near))}`? Otherwise remove it"
        if near
        else f"remove it; {where} has {', '.join(f'`{name}`' for name in known)}"
    )
    return Problem(path, "is not a known key", fix)


def _fix(key: str, default: object) -> str:
    if isinstance(default, str | int | float) and default != "":
        return f"write for example `{key} = {toml_value(default)}`, which is the default"
    return "correct the value, or remove the key"


def _suggest_word(kind: Any, value: object) -> str:
    """For a choice of words, the one that was probably meant."""
    words = [word for part in (kind, *get_args(kind)) if get_origin(part) is Literal for word in get_args(part)]
    near = nearest_name(value, words) if isinstance(value, str) else None
    return f' (did you mean "{near}"?)' if near else ""


def _show(path: KeyPath, value: object) -> str:
    """The wrong value, if it may be shown, and what it is."""
    shown = (redact_query if path[-2:-1] == ("query",) else redact)(path[-1], value)
    if isinstance(value, (Mapping, list)) or shown != value:
        return _kind(value)
    return f"{_kind(value)} {str(value).lower()}" if isinstance(value, bool) else f"{_kind(value)} {shown!r}"[:80]


def _kind(value: object) -> str:
    match value:
        case bool():
            return "the boolean"
        case str():
            return "the string"
        case int() | float():
            return "the number"
        case list():
            return "a list"
        case Mapping():
            return "a table"
    return f"a {type(value).__name__}"
