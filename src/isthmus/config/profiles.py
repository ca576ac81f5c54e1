"""A profile of a `Bridge` → the settings of a provider, read as the configuration is.

In: what a program hands over, `{"api_key": "…", "timeouts": {"idle": "30s"}}` or a `ProviderConfig`. Out: the same type
that the configuration gives, checked and with its key; a `ConfigError` lists every problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from isthmus.config.check import check_provider
from isthmus.config.interpolate import interpolate
from isthmus.config.keys import Sources, fill_keys, lacks_key
from isthmus.config.known import find_known
from isthmus.config.schema import ProviderConfig
from isthmus.config.variables import fill_variables
from isthmus.errors import ConfigError
from isthmus.values.problems import KeyPath, Problem, as_error
from isthmus.values.read import read_struct


def read_profile(
    at: KeyPath,
    provider: str,
    given: Mapping[str, Any] | ProviderConfig,
    *,
    environ: Mapping[str, str],
    folders: Sequence[Path] = (),
) -> ProviderConfig:
    """Settings of `provider` under `at`, whole. A missing key is no problem before somebody needs it."""
    sources = Sources(environ, Path.cwd())
    problems: list[Problem] = []
    if isinstance(given, ProviderConfig):
        settings = given
    else:
        found = interpolate(given, environ, at) if isinstance(given, Mapping) else None
        sources.written |= found.written if found else {}
        problems += found.problems if found else ()
        values = found.values if found else given
        settings = read_struct(ProviderConfig, values, problems, lax=set(sources.written), path=at)
    settings = msgspec.structs.replace(settings, uses=settings.uses.strip() or provider)
    known = find_known(settings.uses, folders, settings.endpoint)
    settings, known = fill_variables(at, settings, known, sources)
    settings = fill_keys(at, settings, known, sources)
    problems += [*sources.problems, *check_provider(at, provider, settings, known)]
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise as_error(errors)
    return settings


def require_key(provider: str, settings: ProviderConfig, folders: Sequence[Path] = ()) -> None:
    known = find_known(settings.uses or provider, folders, settings.endpoint)
    if lacks_key(settings, known):
        variables = " or ".join(f"`{variable}`" for variable in known.key_variables)
        raise ConfigError(
            f"provider `{provider}` needs a key; set {variables}, or give it in a profile or in the configuration",
            code="missing_key",
        )
