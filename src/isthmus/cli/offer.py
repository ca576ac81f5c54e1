"""The model that a coding agent is to start with, and all that it may change to.

In: the gateway's configuration, or a running gateway, and the model's name. Out: the name and what is on offer, or an
error that names the nearest model. Worth knowing: what a house of other people's models serves, or the user's own
server, is written in no file, so any name may go there. A house that lists its own models is taken at its word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from isthmus.bridge.resolve import nearest_name, split_reference
from isthmus.cli.heard import ask_own_servers, recall_words
from isthmus.config.known import CODEX, DEMO, find_known, tell_unserved
from isthmus.config.schema import Config
from isthmus.errors import ConfigError, IsthmusError
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider
from isthmus.providers.catalog import KnownModel
from isthmus.providers.codex_catalog import describe_offered, offered_models
from isthmus.providers.load import Provider

_PATIENCE: Final = 10.0
"""Seconds that a running gateway may take for each step of its answer."""


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
    if sides is None and chosen not in offered:
        raise _unknown(chosen, offered)
    if sides is not None and sides[0] not in providers and (lacks := tell_unserved(sides[0], folders)):
        raise ConfigError(f"`{chosen}` cannot be asked, because `{sides[0]}` is not configured: {lacks}")
    first = {chosen: describe_offered(chosen, providers, names.aliases, names.default)}
    if sides is not None and chosen not in offered and not _may_serve(settings, providers[sides[0]], *sides, folders):
        hint = f'; if `{sides[0]}` has it, name it: `[models.aliases] my-name = "{chosen}"`'
        raise _unknown(chosen, offered, hint)
    return chosen, first | offered


def ask_gateway(url: str, model: str | None, key: str = "") -> tuple[str, str, JsonObject]:
    """Address, model and the list of all models, from a gateway that runs."""
    base = url.rstrip("/").removesuffix("/v1")
    try:
        listed = asyncio.run(_read_listing(base, key))
        slugs = [str(entry["slug"]) for entry in listed["models"]]
    except (IsthmusError, LookupError, TypeError) as error:
        raise ConfigError(f"`{base}` does not answer like a gateway: {error}; is it running?") from error
    chosen = model or next(iter(slugs), "")
    if chosen not in slugs:
        raise _unknown(chosen, slugs)
    return base, chosen, listed


async def _read_listing(base: str, key: str) -> JsonObject:
    from isthmus.upstream.remote import GatewayAddress, RemoteGateway
    from isthmus.upstream.wire import Patience

    patience = Patience(_PATIENCE, _PATIENCE, _PATIENCE)
    gateway = RemoteGateway(GatewayAddress(f"{base}/v1", key, patience=patience))
    try:
        return await gateway.listing()
    finally:
        await gateway.aclose()


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


def _unknown(model: str, known: Iterable[str], hint: str = "") -> ConfigError:
    names = list(known)
    near = nearest_name(model, names) or next((name for name in names if name.endswith(f"/{model}")), None)
    near = near or _nearest_last_part(model, names)
    listed = ", ".join(f"`{name}`" for name in names[:6]) + (" …" if len(names) > 6 else "")
    advice = f"did you mean `{near}`?" if near else f"there is {listed or 'none'}"
    return ConfigError(f"the gateway does not serve a model `{model}`; {advice}{hint}")


def _nearest_last_part(model: str, names: list[str]) -> str | None:
    """`deepseek-v4-por` is near to `deepseek/deepseek-v4-pro`."""
    by_model = {name.partition("/")[2]: name for name in reversed(names) if "/" in name}
    near = nearest_name(model, by_model)
    return by_model[near] if near else None
