"""A provider as a gateway of this configuration knows it: files, entries of the configuration, what its server said.

For commands that look from outside. In: a name and the configuration. Out: the provider with its server's word, from
the store where gateways keep it, or asked just now where somebody wants that.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from isthmus.addresses import is_local
from isthmus.bridge.limits import take_limits
from isthmus.bridge.types.plan import Lesson
from isthmus.config.keys import first_address
from isthmus.config.profiles import read_profile
from isthmus.config.schema import Config, ProviderConfig
from isthmus.errors import ConfigError, IsthmusError
from isthmus.gateway.lessons import believed
from isthmus.providers import Provider, load_provider
from isthmus.providers.word.told import Told, decode_told, place_of

_MOMENT: Final = 3.0
"""Seconds that servers of this machine have to tell about themselves, where a command is better with it."""


def load_known(name: str, folders: Sequence[Path], config: Config) -> tuple[Provider, ProviderConfig | None]:
    """A provider as the configuration has it, with its settings, where it has one of that name; else as its file."""
    settings = config.providers.get(name)
    if settings is None:
        return load_provider(name, folders), None
    place = f"providers.{name} in the configuration"
    provider = load_provider(
        settings.uses or name, folders, models=settings.models, place=place, dialect=settings.dialect
    )
    return recall_words(config, {name: provider})[name], settings


def recall_words(config: Config, providers: Mapping[str, Provider]) -> dict[str, Provider]:
    """Configured providers as their servers described them to the gateways on this store."""
    known = dict(providers)
    if not config.models.refresh or not config.lessons.keep:
        return known
    from isthmus.store.open import ServerLimits, read_words  # late: it brings a database along

    try:
        server = take_limits(ServerLimits, config.store)
        kept = read_words(config.store.url, since=time.time() - config.lessons.keep, server=server)
    except ConfigError as error:
        typer.echo(f"what the servers say of themselves is not known here: {error.message}", err=True)
        return known
    for word in kept:
        provider, settings = known.get(word.provider), config.providers.get(word.provider)
        if provider is None or settings is None or not settings.ask:
            continue
        told = decode_told(word.data)
        if told is not None and word.place == place_of(first_address(provider.endpoint, settings)):
            known[word.provider] = provider.hear(told)
    return known


def recall_lessons(config: Config, name: str, provider: Provider, model: str) -> list[Lesson]:
    """What its server taught the gateways on this store."""
    if not provider.capabilities(model).assumed or not config.lessons.keep:
        return []
    from isthmus.store.open import ServerLimits, read_lessons

    try:
        server, since = take_limits(ServerLimits, config.store), time.time() - config.lessons.keep
        return believed(read_lessons(config.store.url, name, model, since=since, server=server), provider)
    except ConfigError as error:
        typer.echo(f"what the server has taught is not known here: {error.message}", err=True)
        return []


def ask_server(name: str, provider: Provider, settings: ProviderConfig | None, folders: Sequence[Path]) -> Provider:
    """The provider as its server describes it now; raises what keeps it from being asked."""
    from isthmus.wiring import server_asking

    if settings is None:
        settings = read_profile(("providers", name), name, ProviderConfig(), environ=os.environ, folders=list(folders))
    asking = server_asking(name, provider, settings)
    if asking is None:
        raise ConfigError(f"`{name}` is not asked about its models: nothing says where, or `ask` is off")
    return provider.hear(asyncio.run(asking.ask()))


def ask_own_servers(config: Config, providers: Mapping[str, Provider]) -> dict[str, Provider]:
    """The providers, those of this machine as they describe themselves now; one that does not answer stays as it is."""
    from isthmus.wiring import server_asking

    async def ask(name: str, provider: Provider) -> Told | None:
        asking = server_asking(name, provider, config.providers[name])
        try:
            async with asyncio.timeout(_MOMENT):
                return await asking.ask() if asking is not None else None
        except (IsthmusError, TimeoutError):
            return None

    async def ask_all(own: Mapping[str, Provider]) -> list[Told | None]:
        return await asyncio.gather(*(ask(name, provider) for name, provider in own.items()))

    own = {
        name: provider
        for name, provider in providers.items()
        if (address := first_address(provider.endpoint, config.providers[name])) and is_local(address)
    }
    if not own or not config.models.refresh:
        return dict(providers)
    told = dict(zip(own, asyncio.run(ask_all(own)), strict=True))
    return {name: each.hear(word) if (word := told.get(name)) else each for name, each in providers.items()}
