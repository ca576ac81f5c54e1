"""Layers of facts → one table of facts, and for every fact the layer that said it last.

In: `Layer`s, weakest first. Out: plain values that convert to `ProviderCapabilities`, and their origins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities, ToolSupport
from isthmus.providers.schema import FACT_FIELDS, KEYED

DEFAULT: Final = "default"
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """The facts of one place in one file."""

    facts: Mapping[str, Any]
    file: str
    section: str = ""
    """`models."glob"` for a model's entry; empty for the file's own facts."""
    written: bool = True
    """Whether `file` is one, so that a fact has a place in it that one can look at."""

    def origin(self, path: Path) -> str:
        """Where the fact at `path` stands, as a person would look for it."""
        parts = [part for part in (self.section, *path[:-1]) if part]
        return f"{self.file} [{'.'.join(parts)}]" if parts and self.written else self.file


# Entries, not whole tables, are overridden here, so the defaults have to take part.
BASE: Final = Layer({"tools": {"degraded": dict(ToolSupport().degraded)}}, DEFAULT, written=False)


def merge_layers(layers: Iterable[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The merged facts, and the origin of each one by its dotted path."""
    merged: dict[str, Any] = {}
    origins: dict[Path, str] = {}
    for layer in (BASE, *layers):
        _merge_table(merged, layer.facts, (), layer, origins)
    return merged, {".".join(path): origin for path, origin in origins.items()}


def _merge_table(
    into: dict[str, Any], table: Mapping[str, Any], above: Path, layer: Layer, origins: dict[Path, str]
) -> None:
    for key, value in table.items():
        path = (*above, key)
        if value is False and not is_boolean(path):
            into.pop(key, None)
            _forget(origins, path)
        elif isinstance(value, Mapping) and is_section(path):
            child = dict(into.get(key, {}))
            into[key] = child
            if not value:  # `top_p = {}` is a fact as well: the parameter travels as it is
                origins[path] = layer.origin(path)
            _merge_table(child, value, path, layer, origins)
        else:
            into[key] = value
            _forget(origins, path)
            origins[path] = layer.origin(path)


def is_section(path: Path) -> bool:
    """Whether a table at `path` is merged with the one below it; any other table is a value."""
    if ".".join(path) in KEYED or (len(path) == 2 and path[0] == "parameters"):
        return True
    return len(path) == 1 and path[0] in SECTIONS


def is_boolean(path: Path) -> bool:
    """Whether `false` at `path` is a value rather than a taking back."""
    return path in BOOLEANS or (len(path) == 3 and path[0] == "parameters" and path[2] in _RULE_BOOLEANS)


def all_paths() -> tuple[str, ...]:
    """Every fact that has a value of its own even if no file names it."""
    return tuple(".".join(path) for path, _ in _fields())


def _fields() -> Iterator[tuple[Path, Any]]:
    for field in msgspec.structs.fields(ProviderCapabilities):
        if field.name in SECTIONS:
            yield from (((field.name, inner.name), inner.type) for inner in msgspec.structs.fields(field.type))
        elif field.name in FACT_FIELDS:
            yield (field.name,), field.type


def _forget(origins: dict[Path, str], path: Path) -> None:
    for known in [known for known in origins if known[: len(path)] == path]:
        del origins[known]


SECTIONS: Final = frozenset(
    field.name
    for field in msgspec.structs.fields(ProviderCapabilities)
    if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
)
BOOLEANS: Final = frozenset(path for path, kind in _fields() if kind is bool)
_RULE_BOOLEANS: Final = frozenset(field.name for field in msgspec.structs.fields(ParameterRule) if field.type is bool)
