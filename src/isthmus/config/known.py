"""What the provider files say about keys and addresses: all that the configuration needs of them.

In: a provider's name and the user's folders. Out: `KnownProvider`. The one place where `config` meets `providers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isthmus.addresses import gaps_of
from isthmus.providers.find import name_files, words_in_capitals
from isthmus.providers.load import load_provider, provider_names
from isthmus.providers.schema import COMPUTED, EndpointFacts

DEMO: Final = "demo"
CODEX: Final = "codex"
RUN_TIME: Final = frozenset({DEMO, CODEX})
"""Providers that the gateway starts itself: they have no address and no key."""

ORDER: Final = (
    *("deepseek", "zhipu", "minimax", "xiaomi", "kimi", "qwen", "mistral", "groq", "openrouter"),
    *("xai", "gemini", "openai", "together", "fireworks"),
)
"""Which provider comes first when several keys are in the environment; others follow by name."""

AMBIENT: Final = frozenset({"GITHUB_TOKEN", "HF_TOKEN"})
"""Variables that most machines have for something else (repositories, downloads): alone they enable nobody."""


@dataclass(frozen=True, slots=True)
class KnownProvider:
    name: str
    title: str = ""
    base_url: str = ""
    default_model: str = ""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key, in the order in which they are tried."""
    needs_key: bool = False
    variables: tuple[str, ...] = ()
    """What its address is written with, and what is signed for it."""
    all_variables: frozenset[str] = frozenset()
    """The same for all its addresses together."""
    auth: str = "bearer"
    alternatives: tuple[str, ...] = ()
    """Names of its other addresses."""
    alternative_keys: tuple[tuple[str, str], ...] = ()
    """Variables that hold the key of another address only → the name of the first such address."""


def find_known(name: str, folders: Sequence[Path] = (), alternative: str = "") -> KnownProvider:
    """The facts of the provider file `name`, at another of its addresses if one is named.

    `ConfigError` when there is no such file, or it is broken.
    """
    if name == CODEX and name not in provider_names(folders):
        return KnownProvider(CODEX, "Codex app-server")
    provider = load_provider(name, folders)
    endpoint = provider.endpoint
    every = [endpoint, *map(endpoint.alternative, endpoint.alternatives)]
    if alternative in endpoint.alternatives:
        endpoint = endpoint.alternative(alternative)
    return KnownProvider(
        name=provider.name,
        title=provider.title,
        base_url=endpoint.base_url,
        default_model=provider.default_model,
        key_variables=() if endpoint.auth in COMPUTED else tuple(endpoint.key_env),
        needs_key=endpoint.needs_key,
        variables=_variables(endpoint),
        all_variables=frozenset(variable for each in every for variable in _variables(each)),
        auth=endpoint.auth,
        alternatives=tuple(endpoint.alternatives),
        alternative_keys=tuple(
            (variable, name)
            for name, other in endpoint.alternatives.items()
            for variable in other.key_env
            if variable not in endpoint.key_env
        ),
    )


def _variables(endpoint: EndpointFacts) -> tuple[str, ...]:
    return gaps_of(" ".join([endpoint.base_url, *endpoint.sign.values()]))


def known_names(folders: Sequence[Path] = ()) -> list[str]:
    """Every provider there is, in the documented order."""
    names = {*provider_names(folders), CODEX}
    return [*(name for name in ORDER if name in names), *sorted(names.difference(ORDER))]


def known_key_variables(folders: Sequence[Path] = (), environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variable → the provider that it enables, in the documented order of providers. With an environment only the files
    that name one of its variables are read: it is asked for at every start."""
    found: dict[str, str] = {}
    own = {stem for folder in folders for stem in name_files(folder)}
    for name in known_names(folders):
        if environ is not None and name not in own and words_in_capitals(name).isdisjoint(environ):
            continue
        known = find_known(name, folders)
        if known.needs_key:
            for variable in (*known.key_variables, *(variable for variable, _ in known.alternative_keys)):
                if variable not in AMBIENT:
                    found.setdefault(variable, name)
    return found
