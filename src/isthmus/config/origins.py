"""Layers of values, weakest first → one table, and for every value the layer that said it last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from isthmus.values.problems import KeyPath


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    kind: Literal["file", "environment", "flag", "default"]
    detail: str = ""
    """`isthmus.toml:12`, `$ISTHMUS_PORT`, or why this is the default."""

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@dataclass(slots=True)
class Layers:
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, Origin] = field(default_factory=dict)
    """For every value and every table that some layer gave."""

    def add(self, path: KeyPath, value: Any, origin: Origin) -> None:
        """Set what stands at `path`; a table is merged into what is there, anything else replaces it."""
        into = self.values
        for length, part in enumerate(path[:-1], start=1):
            inner = into.get(part)
            if not isinstance(inner, dict):
                inner = into[part] = {}
            self.origins.setdefault(path[:length], origin)
            into = inner
        if isinstance(value, Mapping):
            if not isinstance(into.get(path[-1]), dict):
                into[path[-1]] = {}
            self.origins.setdefault(path, origin)
            for key, inner in value.items():
                self.add((*path, key), inner, origin)
        else:
            into[path[-1]] = value
            self.origins[path] = origin


def nearest_origin(origins: Mapping[KeyPath, Origin], path: KeyPath) -> Origin | None:
    """The origin of a value, or of the nearest table above it; `keys[2]` stands where `keys` does."""
    while path:
        for candidate in (path, (*path[:-1], path[-1].partition("[")[0])):
            if candidate in origins:
                return origins[candidate]
        path = path[:-1]
    return None
