"""File, environment and flags → one `Config`, with the origin of every value.

Precedence, strongest first: flags, `ISTHMUS_*` variables, the file, defaults. `load_config` raises one `ConfigError`
that lists every problem; `read_config` hands the problems over for a program that wants to show them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isthmus.config.check import check_config
from isthmus.config.complete import Completion, complete
from isthmus.config.environment import names_provider, read_variables, sets_provider
from isthmus.config.find import find_config, own_provider_folders
from isthmus.config.interpolate import interpolate
from isthmus.config.known import KnownProvider, known_names, usable_names
from isthmus.config.origins import Layers, Origin, nearest_origin
from isthmus.config.schema import Config
from isthmus.errors import ConfigError
from isthmus.values.locate import locate_keys
from isthmus.values.problems import KeyPath, Problem, as_error
from isthmus.values.read import read_struct
from isthmus.values.redact import is_secret_key


@dataclass(frozen=True, slots=True)
class Reading:
    """A configuration as it was read, sound or not."""

    config: Config
    path: Path | None
    origins: Mapping[KeyPath, Origin]
    written: Mapping[KeyPath, Any]
    """Values that came from variables, as references to them: what may be shown in their place."""
    problems: tuple[Problem, ...]
    known: Mapping[str, KnownProvider]
    """What the provider files say about the providers of the configuration, by their names in it."""
    explicit: bool = False
    """Whether somebody named providers: then these are meant, and no others."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "warning")


def load_config(
    path: Path | str | None = None,
    *,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    noticed: Mapping[str, str] | None = None,
) -> Reading:
    """Read the configuration, or raise a `ConfigError` with all its errors.

    `overrides` are flags: dotted key → value, `None` for a flag that was not given. `noticed`: servers that were found
    on this machine, each with a model that it has; they count where nobody named a provider.
    """
    reading = read_config(path, overrides=overrides, environ=environ, cwd=cwd, noticed=noticed)
    if reading.errors:
        raise as_error(reading.errors)
    return reading


def read_config(
    path: Path | str | None = None,
    *,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    noticed: Mapping[str, str] | None = None,
) -> Reading:
    """Read the configuration with its problems; only a file that cannot be read at all raises."""
    environ = os.environ if environ is None else environ
    cwd = cwd or Path.cwd()
    file = find_config(path, environ, cwd)
    layers, problems = Layers(), list[Problem]()
    written: dict[KeyPath, Any] = {}
    if file is not None:
        problems += _add_file(file, environ, layers, written)
    lax = set(written)
    replaced, unknown = _add_overrides(overrides or {}, environ, layers, written)
    problems = [*(problem for problem in problems if problem.key not in replaced), *unknown]
    refused: list[Problem] = []
    config = read_struct(Config, layers.values, refused, lax=lax | replaced)
    state = Completion(environ, cwd, file, layers.origins, written, noticed=noticed or {})
    config = complete(config, state)
    judged = [*state.problems, *check_config(config, state.known), *_check_mode(file, layers, written)]
    problems += [*refused, *_without_repeats(judged, [*problems, *refused])]
    placed = tuple(_place(problem, layers) for problem in problems)
    for problem in refused:  # the default stands in for it
        layers.origins.pop(problem.key, None)
    return Reading(config, file, layers.origins, written, placed, state.known, state.explicit)


def _add_file(file: Path, environ: Mapping[str, str], layers: Layers, written: dict[KeyPath, Any]) -> Iterable[Problem]:
    try:
        text = file.read_text(encoding="utf-8-sig")
        values = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}. Fix: check its permissions") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text. Fix: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML: {error}. Fix: correct that line") from error
    interpolated = interpolate(values, environ)
    written.update(interpolated.written)
    for key, value in interpolated.values.items():
        layers.add((key,), value, Origin("file", str(file)))
    lines = locate_keys(text)
    for path, origin in layers.origins.items():
        layers.origins[path] = replace(origin, detail=f"{file}:{lines[path]}" if path in lines else str(file))
    return interpolated.problems


def _add_overrides(
    overrides: Mapping[str, object], environ: Mapping[str, str], layers: Layers, written: dict[KeyPath, Any]
) -> tuple[set[KeyPath], list[Problem]]:
    """Variables, then flags, over the file; also which paths they set, and variables that set nothing."""
    variables, unknown = read_variables(environ, _provider_names(layers.values, environ))
    flags = [(_parse_key(key), value) for key, value in overrides.items() if value is not None]
    replaced = {*(variable.path for variable in variables), *(path for path, _ in flags)}
    for path in [path for path in written if path in replaced]:
        del written[path]
    for variable in variables:
        layers.add(variable.path, variable.value, Origin("environment", f"${variable.name}"))
        if is_secret_key(variable.path[-1]):
            written[variable.path] = f"${{{variable.name}}}"
    for path, value in flags:
        layers.add(path, value, Origin("flag"))
        written.pop(path, None)
    return replaced, unknown


def _provider_names(values: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    given = values.get("providers")
    # All of the snapshot's would be thousands of variables: only those that somebody set are looked at.
    named = [name for name in usable_names() if names_provider(environ, name)] if sets_provider(environ) else []
    return [*known_names(own_provider_folders(environ)), *named, *(given if isinstance(given, Mapping) else ())]


def _parse_key(key: str) -> KeyPath:
    """A dotted key as TOML reads it: `models.aliases."gpt-5.5"`."""
    try:
        parsed: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"`{key}` is not a key of the configuration. Fix: write it as `section.key`") from error
    path: KeyPath = ()
    while isinstance(parsed, dict):
        part = next(iter(parsed))
        path, parsed = (*path, part), parsed[part]
    return path


def _check_mode(file: Path | None, layers: Layers, written: Mapping[KeyPath, Any]) -> Iterable[Problem]:
    """A key that stands in a file which others may read is hardly a secret."""
    if file is None or os.name != "posix" or not file.stat().st_mode & 0o077:
        return
    for path, origin in layers.origins.items():
        if origin.kind == "file" and is_secret_key(path[-1]) and path not in written and _text_at(layers.values, path):
            yield Problem(
                path,
                "stands in a file that other users may read",
                f"run `chmod 600 {file}`, or use `${{VAR}}`",
                "warning",
            )


def _text_at(values: Any, path: KeyPath) -> bool:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return isinstance(values, str | list) and bool(values)


def _without_repeats(found: Iterable[Problem], reported: Iterable[Problem]) -> list[Problem]:
    """A key whose value is already known to be wrong is not judged a second time."""
    wrong = {problem.key for problem in reported if problem.key}
    return [problem for problem in found if problem.key not in wrong]


def _place(problem: Problem, layers: Layers) -> Problem:
    origin = nearest_origin(layers.origins, problem.key)
    if problem.place or origin is None:
        return problem
    return replace(problem, place=origin.detail or origin.kind)
