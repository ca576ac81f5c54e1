"""The model that a coding agent is to start with, and all that it may change to.

In: the gateway's configuration and the model's name. Out: the name and what is on offer, or an error that names the
nearest model. A gateway that runs elsewhere is asked by `elsewhere`. Worth knowing: what a house of other people's
models serves, or the user's own server, is written in no file, so any name may go there. A house that lists its own
models is taken at its word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from isthmus.bridge.resolve import nearest_name, resolve_model, split_reference
from isthmus.cli.heard import ask_own_servers, recall_words
from isthmus.config.keys import lacks_key
from isthmus.config.known import CODEX, DEMO, find_known, tell_unserved
from isthmus.config.schema import Config
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider
from isthmus.providers.catalog import KnownModel, describe_model
from isthmus.providers.codex_catalog import describe_offered, offered_models
from isthmus.providers.load import Provider

_ANY: Final = "openai-compatible"
"""The provider of which nothing is known."""


def offer_models(settings: Config, model: str | None) -> tuple[str, dict[str, KnownModel]]:
    """The model and, after it, all others by name, from the gateway's own configuration."""
    folders = [Path(folder) for folder in settings.provider_folders]
    providers = {
        name: load_provider(given.uses or name, folders, models=given.models, dialect=given.dialect)
        for name, given in settings.providers.items()
    }
    providers = ask_own_servers(settings, recall_words(settings, providers))
    names = settings.models
    chosen = (model or names.default or "").strip()
    if not chosen:
        raise ConfigError("no model to use: name one with `--model provider/model`, or set `models.default`")
    offered = offered_models(providers, names.aliases, names.default)
    sides = split_reference(chosen)
    if sides is not None:  # a provider that is only not set up yet is refused with the variable that it wants
        resolve_model(chosen, names.aliases, names.default, list(providers), partial(tell_unserved, folders=folders))
    if sides is None and chosen not in offered:
        raise unknown_model(chosen, offered)
    first = {chosen: describe_offered(chosen, providers, names.aliases, names.default)}
    if sides is not None and chosen not in offered and not _may_serve(settings, providers[sides[0]], *sides, folders):
        hint = f'; if `{sides[0]}` has it, name it: `[models.aliases] my-name = "{chosen}"`'
        raise unknown_model(chosen, offered, hint)
    return chosen, first | offered


def missing_key(settings: Config, model: str) -> str | None:
    """What is to be said where the model's provider has no key, and nobody would answer; `None`: it has."""
    names, folders = settings.models, [Path(folder) for folder in settings.provider_folders]
    name = resolve_model(model, names.aliases, names.default, list(settings.providers)).provider
    given = settings.providers[name]
    if name == DEMO or CODEX in (name, given.uses):
        return None
    known = find_known(given.uses or name, folders, given.endpoint)
    if not lacks_key(given, known):
        return None
    variables = " or ".join(f"`{variable}`" for variable in known.key_variables)
    return f"provider `{name}` has no key; set {variables or f'`providers.{name}.api_key`'} where the gateway runs"


def assume_model(name: str) -> KnownModel:
    """What is known here of a model at a gateway that nobody has asked."""
    sides = split_reference(name)
    try:
        provider = load_provider(sides[0] if sides else _ANY)
    except ConfigError:
        provider = load_provider(_ANY)
    known = describe_model(provider, sides[1] if sides else name)
    return replace(known, provider=sides[0]) if sides else known


def heard_model(name: str, described: JsonObject) -> KnownModel:
    """The same, with what its gateway says of it."""
    window, output = facts_of({"data": [described]}, name)
    return replace(assume_model(name), context=window, output=output)


def facts_of(listing: Mapping[str, object], model: str) -> tuple[int | None, int | None]:
    """Window and longest answer, from the list of a gateway that runs."""
    entries = listing.get("data")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("id") == model and isinstance(facts := entry.get("isthmus"), dict):
            window, output = facts.get("context_window"), facts.get("max_output_tokens")
            return window if isinstance(window, int) else None, output if isinstance(output, int) else None
    return None, None


def _may_serve(settings: Config, provider: Provider, name: str, model: str, folders: list[Path]) -> bool:
    given = settings.providers[name]
    listed = [entry.pattern for entry in provider.models if entry.exact]
    if any(entry.matches(model) for entry in provider.models) or not (listed or provider.default_model):
        return True
    if provider.name == CODEX or given.uses == CODEX or given.base_url or given.endpoints:
        return True
    if provider.name != DEMO and not find_known(provider.name, folders).needs_key:
        return True
    return any("/" in each for each in (provider.default_model, *listed))


def unknown_model(model: str, known: Iterable[str], hint: str = "") -> ConfigError:
    names = list(known)
    near = nearest_model(model, names)
    listed = ", ".join(f"`{name}`" for name in names[:6]) + (" …" if len(names) > 6 else "")
    advice = f"did you mean `{near}`?" if near else f"there is {listed or 'none'}"
    return ConfigError(f"the gateway does not serve a model `{model}`; {advice}{hint}")


def nearest_model(model: str, names: Sequence[str]) -> str | None:
    near = nearest_name(model, names) or next((name for name in names if name.endswith(f"/{model}")), None)
    return near or _nearest_last_part(model, names)


def _nearest_last_part(model: str, names: Sequence[str]) -> str | None:
    """`deepseek-v4-por` is near to `deepseek/deepseek-v4-pro`."""
    by_model = {name.partition("/")[2]: name for name in reversed(names) if "/" in name}
    near = nearest_name(model, by_model)
    return by_model[near] if near else None
