"""Is a provider file sound? Every problem is found, each with its dotted path and the next step.

In: the TOML values of one file. Out: problems, worded for the person who wrote it. Types and unknown keys
come from the structs (`schema`, `bridge.capabilities`), so that there is no second list to keep.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from isthmus.bridge.capabilities import EFFORTS, ProviderCapabilities
from isthmus.providers.merge import is_boolean
from isthmus.providers.schema import FACT_FIELDS, HEAD_FIELDS, MODEL_HEAD_FIELDS, FileHead, ModelHead


def find_problems(raw: Mapping[str, Any], stem: str) -> list[str]:
    """Everything wrong with a file called `stem`; an empty list is a sound file."""
    problems = list(_check_keys(raw, (*HEAD_FIELDS, *FACT_FIELDS, "models"), ""))
    problems += _check_fields(raw, FileHead, "", HEAD_FIELDS)
    problems += _check_facts(raw, "")
    problems += _check_head(raw, stem)
    models = raw.get("models", {})
    if not isinstance(models, Mapping):
        return [*problems, "`models` must be a table of tables, one per model or glob"]
    for pattern, entry in models.items():
        problems += _check_model(entry, pattern)
    return problems


def _check_model(entry: Any, pattern: str) -> Iterator[str]:
    path = f'models."{pattern}"'
    if not isinstance(entry, Mapping):
        yield f"`{path}` must be a table"
        return
    yield from _check_keys(entry, (*MODEL_HEAD_FIELDS, *FACT_FIELDS), path)
    yield from _check_fields(entry, ModelHead, path, MODEL_HEAD_FIELDS)
    yield from _check_facts(entry, path)


def _check_facts(table: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _check_fields(table, ProviderCapabilities, path, frozenset(FACT_FIELDS), above=())
    reasoning = table.get("reasoning")
    if isinstance(reasoning, Mapping):
        yield from _check_efforts(reasoning, _join(path, "reasoning"))


def _check_keys(table: Mapping[str, Any], known: Iterable[str], path: str) -> Iterator[str]:
    known = tuple(known)
    for key in table:
        if key not in known:
            yield f"`{_join(path, key)}` is not known{_suggest(key, known)}"


def _suggest(key: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.6) or [name for name in names if key in name.split("_")]
    return f"; did you mean `{close[0]}`?" if close else f"; known here: {', '.join(names)}"


def _check_fields(
    table: Mapping[str, Any],
    shape: type[msgspec.Struct],
    path: str,
    names: frozenset[str] | None = None,
    above: tuple[str, ...] | None = None,
) -> Iterator[str]:
    """Check the fields of `shape` that `table` has. `above` is set inside facts, where `false` may take back."""
    for name, kind in _types(shape).items():
        if name not in table or (names is not None and name not in names):
            continue
        here = None if above is None else (*above, name)
        yield from _check_value(table[name], kind, _join(path, name), here)


def _check_value(value: Any, kind: Any, path: str, fact: tuple[str, ...] | None) -> Iterator[str]:
    if value is False and fact is not None and not is_boolean(fact):
        return
    struct, keyed = _struct_in(kind)
    if struct is None or not isinstance(value, Mapping):
        yield from _check_leaf(value, kind, path)
    elif keyed:
        for key, entry in value.items():
            inner = None if fact is None else (*fact, key)
            yield from _check_value(entry, struct, _join(path, key), inner)
    else:
        yield from _check_keys(value, _types(struct), path)
        yield from _check_fields(value, struct, path, above=fact)
        yield from _check_required(value, struct, path)


def _check_required(value: Mapping[str, Any], struct: type[msgspec.Struct], path: str) -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        if field.required and field.name not in value:
            yield f"`{path}` needs `{field.name}`"


_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")


def _check_leaf(value: Any, kind: Any, path: str) -> Iterator[str]:
    # Entries of a table may be taken back one by one; only what is left has to have the right type.
    if isinstance(value, Mapping):
        value = {key: entry for key, entry in value.items() if entry is not False}
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text = str(error)
        inside = _AT.search(text)
        where = path + (inside["path"].replace("[...]", "") if inside else "")
        reason = _AT.sub("", text)
        yield f"`{where}`: {reason[0].lower()}{reason[1:].replace('`', '')}"


def _check_head(raw: Mapping[str, Any], stem: str) -> Iterator[str]:
    name = raw.get("name", stem)
    if isinstance(name, str) and name != stem:
        yield f"`name` is `{name}`, but the file is called `{stem}.toml`; make them the same"
    checked = raw.get("checked", "")
    if isinstance(checked, str) and checked and not re.fullmatch(r"\d{4}-\d\d-\d\d", checked):
        yield '`checked` must be a day in quotes, for example `"2026-11-15"`'
    endpoint = raw.get("endpoint")
    base_url = endpoint.get("base_url", "") if isinstance(endpoint, Mapping) else ""
    if isinstance(base_url, str) and base_url and not base_url.startswith(("http://", "https://")):
        yield "`endpoint.base_url` must start with `http://` or `https://`"


def _check_efforts(reasoning: Mapping[str, Any], path: str) -> Iterator[str]:
    scale, mapping = reasoning.get("scale"), reasoning.get("map")
    named = [("scale", effort) for effort in scale] if isinstance(scale, list) else []
    if isinstance(mapping, Mapping):
        named += [("map", effort) for pair in mapping.items() for effort in pair]
    for field, effort in named:
        if isinstance(effort, str) and effort not in EFFORTS:
            yield f"`{path}.{field}`: `{effort}` is not an effort{_suggest(effort, EFFORTS)}"
    known = [effort for effort in scale if effort in EFFORTS] if isinstance(scale, list) else []
    if known != sorted(known, key=EFFORTS.index):
        yield f"`{path}.scale` must go from the weakest to the strongest effort"


@lru_cache(maxsize=64)
def _types(shape: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(shape)}


def _struct_in(kind: Any) -> tuple[type[msgspec.Struct] | None, bool]:
    """The struct that a field holds, and whether it holds a table of them."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind, False
    arguments = typing.get_args(kind)
    if len(arguments) == 2 and typing.get_origin(kind) is Mapping:
        return _struct_in(arguments[1])[0], True
    structs = [struct for struct, _ in map(_struct_in, arguments) if struct is not None]
    return (structs[0], False) if structs else (None, False)


def _join(path: str, key: str) -> str:
    name = key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'
    return f"{path}.{name}" if path else name
