"""What a provider's address is written with (`${AZURE_RESOURCE_NAME}`) → the values, from the configuration or else
from the environment.

In: a provider's settings and what its file says. Out: the settings with every value, and the file's facts with the
address that results, so that whoever asks which host a key is for sees the real one. A value that could lead to another
host is a problem, and so is one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from isthmus.addresses import fill_gaps, misfit
from isthmus.bridge.resolve import nearest_name
from isthmus.config.keys import Sources
from isthmus.config.known import KnownProvider
from isthmus.config.origins import Origin
from isthmus.config.schema import ProviderConfig
from isthmus.values.problems import KeyPath, Problem


def fill_variables(
    at: KeyPath, provider: ProviderConfig, known: KnownProvider, sources: Sources
) -> tuple[ProviderConfig, KnownProvider]:
    """Both with the values in them; `at` is where the provider is configured."""
    given = {name: value.strip() for name, value in provider.variables.items()}
    sources.problems += _check(at, given, known)
    values = {name: value for name, value in given.items() if value}
    for name in known.variables:
        found = sources.environ.get(name, "").strip()
        path = (*at, "variables", name)
        if name in values or not found:
            continue
        values[name] = found
        sources.origins[path] = Origin("environment", f"${name}")
        sources.written[path] = f"${{{name}}}"
        sources.problems += _check(at, {name: found}, known)
    missing = [name for name in known.variables if name not in values]
    if missing and not _says_address(provider):
        found_now = [_missing(at, name, known) for name in missing]
        sources.problems += [problem for problem in found_now if problem not in sources.problems]
    filled = replace(known, base_url=fill_gaps(known.base_url, values))
    return msgspec.structs.replace(provider, variables=values), filled


def _says_address(provider: ProviderConfig) -> bool:
    """Whether the user wrote every address whole."""
    return bool(provider.base_url) or (bool(provider.endpoints) and all(e.base_url for e in provider.endpoints))


def _check(at: KeyPath, values: dict[str, str], known: KnownProvider) -> Iterator[Problem]:
    for name, value in values.items():
        path = (*at, "variables", name)
        if name not in known.all_variables:
            near = nearest_name(name, known.all_variables)
            there = ", ".join(f"`{each}`" for each in sorted(known.all_variables)) or "none"
            fix = f"did you mean `{near}`?" if near else f"remove it; there are: {there}"
            yield Problem(path, f"is nothing that the address of `{known.name}` is written with", fix)
        elif value and (told := misfit(known.base_url, name, value)):
            yield Problem(path, f"does not fit into the address `{known.base_url}`", f"it must be {told}")


def _missing(at: KeyPath, name: str, known: KnownProvider) -> Problem:
    return Problem(
        (*at, "variables"),
        f"lacks `{name}`, which the address of `{known.name}` is written with (`{known.base_url}`)",
        f'set it in the environment (`export {name}=…`), or write `variables = {{ {name} = "…" }}` here',
    )
