"""`${VAR}` and `${VAR:-default}` in texts → the values of the environment.

In: the values of a file. Out: the same with references replaced, the texts as they were written (so that printing
a config shows the reference and not the secret), and a problem for each variable that is not set. `$${` stands
for `${` itself. A variable that is set but empty counts as empty for `${VAR}`, as unset for `${VAR:-default}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from isthmus.values.problems import KeyPath, Problem

REFERENCE: Final = re.compile(r"\$(?:\$(?=\{)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})")
_BROKEN: Final = re.compile(r"(?<!\$)\$\{")


@dataclass(frozen=True, slots=True)
class Interpolated:
    values: dict[str, Any]
    written: Mapping[KeyPath, Any]
    """Values that hold references, as they stand in the file."""
    problems: tuple[Problem, ...]


def interpolate(values: Mapping[str, Any], environ: Mapping[str, str], path: KeyPath = ()) -> Interpolated:
    """Replace every reference below `values`, which stand at `path`; keys are left alone."""
    state = _State(environ)
    return Interpolated(state.table(values, path), state.written, tuple(state.problems))


@dataclass(slots=True)
class _State:
    environ: Mapping[str, str]
    written: dict[KeyPath, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def table(self, values: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
        return {key: self.value(value, (*path, key), (*path, key)) for key, value in values.items()}

    def value(self, value: Any, path: KeyPath, owner: KeyPath) -> Any:
        """`owner` is where origins know the value: inside a list, the list."""
        match value:
            case str() if "${" in value:
                return self.text(value, path)
            case list():
                found = [
                    self.value(entry, (*path[:-1], f"{path[-1]}[{index}]"), owner) for index, entry in enumerate(value)
                ]
                if found != value:
                    self.written[owner] = value
                return found
            case Mapping():
                return self.table(value, path)
        return value

    def text(self, text: str, path: KeyPath) -> str:
        self.written[path] = text
        missing: list[str] = []

        def replace(match: re.Match[str]) -> str:
            name, default = match["name"], match["default"]
            if name is None:
                return "$"
            value = self.environ.get(name)
            if value is not None and (value or default is None):
                return value
            if default is None:
                missing.append(name)
            return default if default is not None else match[0]

        replaced = REFERENCE.sub(replace, text)
        for name in dict.fromkeys(missing):
            self.problems.append(
                Problem(
                    path,
                    f"refers to `${{{name}}}`, which is not set in the environment",
                    f"set it (`export {name}=…`), or write `${{{name}:-}}` where it may be empty",
                )
            )
        if _BROKEN.search(REFERENCE.sub("\0", text)):
            self.problems.append(
                Problem(
                    path,
                    "has a `${` that is not a reference",
                    "write `${NAME}` or `${NAME:-default}`; for the characters themselves write `$${`",
                )
            )
        return replaced
