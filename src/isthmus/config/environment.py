"""`ISTHMUS_*` variables → values for keys of the configuration.

In: the environment and the providers there may be. Out: key path → text, with the variable that said it; and the
variables that mean nothing, which are probably misspelt. The name is the path in capitals, joined by underscores:
`ISTHMUS_SERVER_PORT`, `ISTHMUS_PROVIDERS_DEEPSEEK_TIMEOUTS_IDLE`; `ISTHMUS_HOST` and `ISTHMUS_PORT` are short forms.
A table is a list of `name=value`, a list is separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec

from isthmus.bridge.resolve import nearest_name
from isthmus.config.schema import Config, ProviderConfig
from isthmus.values.problems import KeyPath, Problem

PREFIX: Final = "ISTHMUS_"
SHORT: Final[Mapping[str, KeyPath]] = {"ISTHMUS_HOST": ("server", "host"), "ISTHMUS_PORT": ("server", "port")}
OTHERS: Final = frozenset({"ISTHMUS_CONFIG", "ISTHMUS_API_KEY", "ISTHMUS_BASE_URL", "ISTHMUS_MODEL"})
"""Read elsewhere: by the file search and by clients of a gateway."""


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    path: KeyPath
    value: str


def read_variables(environ: Mapping[str, str], providers: Iterable[str]) -> tuple[list[Variable], list[Problem]]:
    """The values that the environment sets; an empty variable sets nothing."""
    names = [name for name in environ if name.startswith(PREFIX) and name not in OTHERS and environ[name].strip()]
    known = known_variables(providers) if names else {}
    found: list[Variable] = []
    problems: list[Problem] = []
    # The short forms come first, so that the full name wins where both are set.
    for name in sorted(names, key=lambda name: (name not in SHORT, name)):
        if name not in known:
            # Without what they all begin with, which would make any two of them alike.
            near = nearest_name(name.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known))
            fix = f"did you mean `{PREFIX}{near}`?" if near else "unset it, or correct its name"
            problems.append(Problem((), "sets no known key", fix, "warning", f"${name}"))
            continue
        path, is_table = known[name]
        if is_table:
            found += _read_table(name, path, environ[name], problems)
        else:
            found.append(Variable(name, path, environ[name]))
    return found, problems


def sets_provider(environ: Mapping[str, str]) -> bool:
    """Whether some variable sets a key of any provider."""
    return any(name.startswith(f"{PREFIX}PROVIDERS_") for name in environ)


def names_provider(environ: Mapping[str, str], provider: str) -> bool:
    """Whether some variable sets a key of this provider."""
    above = f"{_name(('providers', provider))}_"
    return any(name.startswith(above) for name in environ)


def known_variables(providers: Iterable[str]) -> dict[str, tuple[KeyPath, bool]]:
    """Every variable that sets a key, its path, and whether the key is a table of strings."""
    found = {**{name: (path, False) for name, path in SHORT.items()}, **_of_the_schema(Config)}
    of_a_provider = _of_the_schema(ProviderConfig)
    for provider in providers:
        above = _name(("providers", provider))
        for name, (below, is_table) in of_a_provider.items():
            found[f"{above}_{name.removeprefix(PREFIX)}"] = (("providers", provider, *below), is_table)
    return found


@cache
def _of_the_schema(cls: type[msgspec.Struct]) -> Mapping[str, tuple[KeyPath, bool]]:
    """By the names of its variables, were it the whole configuration. There are two of these."""
    return {_name(path): (path, is_table) for path, is_table in _paths(cls, ())}


def _read_table(name: str, path: KeyPath, text: str, problems: list[Problem]) -> Iterator[Variable]:
    for part in text.split(","):
        key, equals, value = (side.strip() for side in part.partition("="))
        if equals and key:
            yield Variable(name, (*path, key), value)
        elif part.strip():
            problems.append(
                Problem(
                    path, "must be a list of `name=value`, separated by commas", f"correct `{name}`", place=f"${name}"
                )
            )


def _paths(cls: type[msgspec.Struct], above: KeyPath) -> Iterator[tuple[KeyPath, bool]]:
    for field in msgspec.structs.fields(cls):
        path = (*above, field.name)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _paths(field.type, path)
        elif get_origin(field.type) is Mapping or _is_mapping(field.type):
            if get_args(field.type) == (str, str):
                yield path, True
        elif get_origin(field.type) is not list or _is_text(get_args(field.type)[0]):
            yield path, False


def _is_text(kind: Any) -> bool:
    """Also text with a rule, such as that it must not be empty."""
    return kind is str or (get_origin(kind) is Annotated and get_args(kind)[0] is str)


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _name(path: KeyPath) -> str:
    return PREFIX + "_".join(re.sub(r"[^A-Za-z0-9]+", "_", part) for part in path).upper()
