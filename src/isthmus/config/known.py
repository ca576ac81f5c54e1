"""What the provider files say about keys and addresses: all that the configuration needs of them.

In: a provider's name and the user's folders. Out: `KnownProvider`. The one place where `config` meets `providers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from isthmus.addresses import gaps_of
from isthmus.errors import ConfigError
from isthmus.providers.find import name_files, snapshot_names, words_in_capitals
from isthmus.providers.load import load_provider, provider_names
from isthmus.providers.schema import COMPUTED, EndpointFacts
from isthmus.providers.snapshot import obstacle, snapshot_index
from isthmus.values.problems import dotted

DEMO: Final = "demo"
CODEX: Final = "codex"
RUN_TIME: Final = frozenset({DEMO, CODEX})
"""Providers that the gateway starts itself: they have no address and no key."""

ORDER: Final = (
    *("deepseek", "zhipu", "minimax", "xiaomi", "kimi", "qwen", "mistral", "groq", "openrouter"),
    *("xai", "gemini", "openai", "together", "fireworks"),
)
"""Which provider comes first when several keys are in the environment; others with a file follow by name, then those
of the snapshot."""

AMBIENT: Final = frozenset(
    {
        # Of a cloud or a forge, for everything there is to do: git, machines, storage.
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GITHUB_TOKEN"),
        *("GITLAB_TOKEN", "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY", "DIGITALOCEAN_ACCESS_TOKEN", "VULTR_API_KEY"),
        *("DATABRICKS_TOKEN", "AICORE_SERVICE_KEY"),
        # For models that are fetched and training that is watched.
        *("HF_TOKEN", "WANDB_API_KEY"),
        # The name does not say whose it is.
        "INFERENCE_API_KEY",
    }
)
"""Variables that people have for other reasons: being there enables no provider. Who names the provider, in the
configuration or in a model's name there, wants it to be used."""


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
    """Every provider with a file, in the documented order."""
    names = {*provider_names(folders), CODEX}
    return [*(name for name in ORDER if name in names), *sorted(names.difference(ORDER))]


def all_names(folders: Sequence[Path] = ()) -> list[str]:
    """Every provider that can be named, in the documented order: those with a file, then those of the snapshot."""
    names = known_names(folders)
    return [*names, *sorted(set(usable_names()).difference(names))]


@lru_cache(maxsize=1)
def usable_names() -> tuple[str, ...]:
    """The providers of the snapshot that can be spoken to and have no file of ours."""
    index = snapshot_index()
    return tuple(name for name in snapshot_names() if not obstacle(index[name]))


def known_key_variables(folders: Sequence[Path] = (), environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variable → the provider that it enables, in the documented order of providers. With an environment only what its
    variables speak of is looked at, and only files that name one of them are read: it is asked for at every start."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    own = {stem for folder in folders for stem in name_files(folder)}
    for name in known_names(folders):
        if environ is not None and name not in own and words_in_capitals(name).isdisjoint(environ):
            continue
        known = find_known(name, folders)
        variables = (*known.key_variables, *(variable for variable, _ in known.alternative_keys))
        taken.update(variables)
        for variable in variables if known.needs_key else ():
            if variable not in AMBIENT:
                found.setdefault(variable, name)
    # A variable that a file names is that file's.
    houses = _houses().items()
    left = {variable: name for variable, name in houses if environ is None or variable in environ}
    return found | {variable: name for variable, name in left.items() if variable not in taken | AMBIENT}


@lru_cache(maxsize=1)
def _houses() -> dict[str, str]:
    """Variable → the provider of the snapshot that it belongs to, by name. Of several (another region, a plan beside
    the house itself) it is the one with the shortest name: that is the house."""
    index = snapshot_index()
    found: dict[str, str] = {}
    for name in sorted(usable_names(), key=lambda name: (len(name), name)):
        # A place on this machine may not even run, and one with a blank to fill needs more than a key.
        if not index[name].is_local and "${" not in index[name].base_url:
            for variable in index[name].key_env:
                found.setdefault(variable, name)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def tell_unserved(name: str, folders: Sequence[Path] = ()) -> str:
    """What a provider lacks that is known and not configured; empty where nobody knows it."""
    try:
        known = find_known(name, folders)
    except ConfigError as error:
        return error.message if name in snapshot_names() else ""
    name = known.name  # it may have been called by another
    section = f"add `[{dotted(('providers', name))}]` to the configuration"
    enabling = known_key_variables(folders)
    wanted = " or ".join(f"`{variable}`" for variable in known.key_variables if enabling.get(variable) == name)
    return f"set {wanted} in the environment of the gateway, or {section}" if wanted else section
