"""Plain values → frozen structs, with every problem found, not only the first. The one reader of all that people write:
the configuration, profiles of a `Bridge`, provider files.

In: values, and the paths whose text stands for another type (they came from the environment, a flag or a `${VAR}`).
Out: a struct, and `Problem`s. A value that cannot be used is reported and its default takes its place, so that the rest
can be checked as well.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from isthmus.bridge.resolve import nearest_name
from isthmus.values.problems import KeyPath, Problem, dotted
from isthmus.values.quantities import DURATION, SIZE, parse_duration, parse_size
from isthmus.values.redact import redact, redact_unnamed
from isthmus.values.toml_text import toml_value

S = TypeVar("S", bound=msgspec.Struct)

_LISTS: Final = (list, frozenset)


def read_struct(
    cls: type[S], values: object, problems: list[Problem], *, lax: Collection[KeyPath] = (), path: KeyPath = ()
) -> S:
    """One table and all below it; `lax` paths may spell numbers, truth values and lists as text."""
    return cls(**read_fields(fields_of(cls), values, problems, lax=lax, path=path))


def read_fields(
    fields: Mapping[str, FieldInfo],
    values: object,
    problems: list[Problem],
    *,
    lax: Collection[KeyPath] = (),
    path: KeyPath = (),
) -> dict[str, Any]:
    """The same for the fields alone: what a file may say may come from more than one struct."""
    return _Reader(problems, lax).read_fields(fields, values, path)


def fields_of(cls: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(cls)}


class _Unfit(ValueError):
    """A value that does not fit; the words say what would."""


class _Told(Exception):
    """A value that cannot be used, and whose problems are noted already."""


@dataclass(frozen=True, slots=True)
class _Reader:
    problems: list[Problem]
    lax: Collection[KeyPath]

    def read_fields(self, fields: Mapping[str, FieldInfo], values: object, path: KeyPath) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            fix = f"write `[{dotted(path)}]` above its keys"
            self.problems.append(Problem(path, f"must be a table, not {_kind(values)}", fix))
            return {}
        made: dict[str, Any] = {}
        for key, value in values.items():
            here = (*path, str(key))
            if key not in fields:
                self.problems.append(_unknown(here, list(fields)))
            else:
                self.enter(made, key, fields[key].type, value, here, _fix(fields[key]))
        return made

    def enter(self, made: dict[str, Any], key: str, kind: Any, value: Any, path: KeyPath, fix: str) -> None:
        """Note one value, or what is wrong with it."""
        try:
            made[key] = self.read_value(kind, value, path)
        except _Unfit as error:
            shown = "" if path in self.lax else f", not {_show(path, value)}"
            self.problems.append(Problem(path, f"must be {error}{shown}", fix))
        except _Told:
            return

    def read_value(self, kind: Any, value: Any, path: KeyPath) -> Any:
        if struct := _struct(kind):
            return self.read_struct(struct, value, path) if value is not None or kind is struct else None
        origin = get_origin(kind)
        if origin in _LISTS:
            return self.read_list(kind, value, path)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self.read_table(kind, value, path)
        parser = _quantity_parser(kind)
        if parser is not None and isinstance(value, str):
            try:
                value = parser(value)
            except ValueError as error:
                raise _Unfit(*error.args) from error
        try:
            return msgspec.convert(value, kind, strict=path not in self.lax)
        except msgspec.ValidationError as error:
            raise _Unfit(describe_type(kind) + _suggest_word(kind, value)) from error

    def read_struct(self, struct: type[S], value: Any, path: KeyPath) -> S:
        if isinstance(value, struct):
            return value
        fields = fields_of(struct)
        made = self.read_fields(fields, value, path)
        if not isinstance(value, Mapping):
            raise _Told
        needed = [name for name, field in fields.items() if field.required]
        for name in needed:
            if name not in value:
                self.problems.append(Problem((*path, name), "is missing", f"`[{dotted(path)}]` needs it"))
        if any(name not in made for name in needed):
            raise _Told
        return struct(**made)

    def read_list(self, kind: Any, value: Any, path: KeyPath) -> Any:
        (inner,) = get_args(kind)
        if isinstance(value, str) and path in self.lax:
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list | tuple | set | frozenset):
            raise _Unfit(describe_type(kind))
        made: dict[str, Any] = {}
        for index, entry in enumerate(value):
            here = (*path[:-1], f"{path[-1]}[{index}]")
            self.enter(made, str(index), inner, entry, here, "correct the value, or remove the entry")
        return get_origin(kind)(made.values())

    def read_table(self, kind: Any, value: Any, path: KeyPath) -> Any:
        """A table whose keys the user names: each entry is checked by itself."""
        if not isinstance(value, Mapping):
            raise _Unfit(describe_type(kind))
        made: dict[str, Any] = {}
        for key, entry in value.items():
            here = (*path, str(key))
            self.enter(made, key, get_args(kind)[1], entry, here, "correct the value, or remove the entry")
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
    if get_origin(base) in _LISTS:
        return f"a list of {_plural(get_args(base)[0])}"
    if get_origin(base) is not None:
        return f"a table of {_plural(get_args(base)[1])}"
    return _NAMES.get(base, "a table") + _bounds(metas)


_NAMES: dict[Any, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_PLURALS: dict[Any, str] = {str: "strings", int: "integers", list[str]: "lists of strings", Any: "values"}


def _plural(kind: Any) -> str:
    if getattr(kind, "__metadata__", ()):
        kind = get_args(kind)[0]
    return "words" if get_origin(kind) is Literal else _PLURALS.get(kind, "tables")


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
    if get_origin(kind) in (types.UnionType, typing.Union):  # it may be left out
        return next((found for part in get_args(kind) if (found := _quantity_parser(part))), None)
    for meta in getattr(kind, "__metadata__", ()):
        quantity = (meta.extra or {}).get("quantity")
        if quantity is not None:
            return parse_duration if quantity == DURATION else parse_size
    return None


def _struct(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds, also where it may hold nothing."""
    if get_origin(kind) in (types.UnionType, typing.Union):
        return next((found for part in get_args(kind) if (found := _struct(part))), None)
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _unknown(path: KeyPath, known: Iterable[str]) -> Problem:
    near = _nearest(path[-1], known := list(known))
    where = f"`[{dotted(path[:-1])}]`" if path[:-1] else "the top level"
    fix = (
        f"did you mean `{dotted((*path[:-1], near))}`? Otherwise remove it"
        if near
        else f"remove it; {where} has {', '.join(f'`{name}`' for name in known)}"
    )
    return Problem(path, "is not a known key", fix)


def _nearest(key: str, known: list[str]) -> str | None:
    """Also a name that has the key as one of its words: `url` for `base_url`."""
    return nearest_name(key, known, likeness=0.6) or next((name for name in known if key in name.split("_")), None)


def _fix(field: FieldInfo) -> str:
    default = field.default
    if isinstance(default, str | int | float) and default != "":
        return f"write for example `{field.name} = {toml_value(default)}`, which is the default"
    return "correct the value, or remove the key"


def _suggest_word(kind: Any, value: object) -> str:
    """For a choice of words, the one that was probably meant."""
    words = [word for part in (kind, *get_args(kind)) if get_origin(part) is Literal for word in get_args(part)]
    near = nearest_name(value, words) if isinstance(value, str) else None
    return f' (did you mean "{near}"?)' if near else ""


def _show(path: KeyPath, value: object) -> str:
    """The wrong value, if it may be shown, and what it is."""
    shown = (redact_unnamed if path[-2:-1] in (("query",), ("headers",)) else redact)(path[-1], value)
    if value is None or isinstance(value, (Mapping, list)) or shown != value:
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
        case None:
            return "None"
    return f"a {type(value).__name__}"
