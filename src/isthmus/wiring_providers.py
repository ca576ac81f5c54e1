"""A configured provider → `Served`: who is asked for its models, with which key, and who asks its server about them."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus import __version__
from isthmus.bridge.limits import AnswerLimits, take_limits
from isthmus.conduct.aside import Aside
from isthmus.config.keys import Key, first_address, shows_header
from isthmus.config.schema import Config, ProviderConfig
from isthmus.config.secrets import configured_secrets
from isthmus.gateway.directory import Load, Served
from isthmus.log import tell
from isthmus.ports import Workers, key_for
from isthmus.providers import Provider, load_provider
from isthmus.providers.dialects import choose_dialect
from isthmus.providers.schema import COMPUTED
from isthmus.upstream.asking import Asking
from isthmus.upstream.endpoint import EMBEDDINGS, IMAGES
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.pool import PooledBackend
from isthmus.upstream.retry import RetryingBackend, RetryRule
from isthmus.upstream.wire import Wire
from isthmus.wiring_endpoints import http_endpoint, places_of, with_key
from isthmus.wiring_workers import schema_bounds

if TYPE_CHECKING:  # loaded only where somebody uses it
    from isthmus.upstream.codex.options import CodexOptions
    from isthmus.upstream.keyed import KeyedBackend

log = logging.getLogger("isthmus.wiring")


async def serve_provider(
    name: str,
    settings: ProviderConfig,
    config: Config,
    stack: AsyncExitStack,
    workers: Workers,
    aside: Aside | None = None,
) -> Served:
    provider = load_provider(
        settings.uses or name,
        [Path(folder) for folder in config.provider_folders],
        models=settings.models,
        place=f"providers.{name} in the configuration",
        dialect=settings.dialect,
    )
    if provider.capabilities().dialect == "codex":
        return await _serve_codex(name, provider, settings, take_limits(AnswerLimits, config.limits))
    base_url = settings.base_url
    if provider.name == "demo" and not base_url:
        from isthmus.demo import DemoServer

        demo = await stack.enter_async_context(DemoServer(workers=workers, bounds=schema_bounds(config.checks)))
        base_url = demo.base_url
    dialect = choose_dialect(name, provider, settings.dialect)
    given = {
        "": settings,
        **{who: with_key(settings, key) for who, key in callers_keys(name, settings, config).items()},
    }
    ways_to = {
        who: [http_endpoint(name, provider, place, base_url, dialect) for place in places_of(each)]
        for who, each in given.items()
    }
    endpoints = [endpoint for each in ways_to.values() for endpoint in each]
    # Of all providers: what stands behind one address may well know the key of another.
    secrets = [*(secret for endpoint in endpoints for secret in endpoint.secrets()), *configured_secrets(config)]
    limits = take_limits(AnswerLimits, config.limits)
    places = {who: [HttpBackend(place, secrets, limits, aside) for place in each] for who, each in ways_to.items()}
    wires = {who: [place.wire for place in each] for who, each in places.items()}
    backend = _keyed({who: _chain(each, settings.retries) for who, each in places.items()})
    if provider.endpoint.key_env:  # the others take none
        for told in dict.fromkeys(endpoint.credential for endpoint in endpoints):
            tell(log, "info", "provider.credential", provider=name, sent=told)
    asking = server_asking(name, provider, settings, base_url)
    return Served(
        name,
        provider,
        backend,
        settings.timeouts.total,
        listed=config.models.listed,
        asking=asking,
        embedder=backend if all(EMBEDDINGS in endpoint.others for endpoint in endpoints) else None,
        drawer=backend if all(IMAGES in endpoint.others for endpoint in endpoints) else None,
        load=lambda: _load(wires),
        resting=lambda behalf: all(wire.breaker.resting for wire in wires[key_for(backend, behalf)]),
    )


_Chain = HttpBackend | PooledBackend | RetryingBackend


def _chain(places: list[HttpBackend], retries: int) -> _Chain:
    """One way to ask: all places that one caller's requests may go to."""
    backend: _Chain = places[0] if len(places) == 1 else PooledBackend(places)
    return RetryingBackend(backend, RetryRule(retries=retries)) if retries else backend


def _keyed(chains: Mapping[str, _Chain]) -> _Chain | KeyedBackend:
    if len(chains) == 1:
        return chains[""]
    from isthmus.upstream.keyed import KeyedBackend

    return KeyedBackend(chains)


def _load(wires: Mapping[str, Sequence[Wire]]) -> Load:
    every = [wire for each in wires.values() for wire in each]
    sent, waiting = (sum(each) for each in zip(*(wire.load for wire in every), strict=True))
    return Load(sent, waiting, sum(wire.breaker.rest is not None for wire in every))


def callers_keys(name: str, settings: ProviderConfig, config: Config) -> dict[str, str]:
    """Caller → the key that this provider is shown for them: what it says itself goes before what a team says."""
    said = {
        f"team:{team}": Key(key, f"the key in `teams.{team}.upstream_keys.{name}`")
        for team, each in config.teams.items()
        if (key := each.upstream_keys.get(name))
    }
    return {**said, **settings.keys_for}


def server_asking(name: str, provider: Provider, settings: ProviderConfig, base_url: str = "") -> Asking | None:
    """How its server is asked about its models: the first of its places, with the key that requests show there."""
    if not settings.ask or not provider.word.paths or provider.capabilities().dialect == "codex":
        return None
    if provider.endpoint.auth in COMPUTED and not settings.api_key:
        return None  # a signer belongs to one wire, and clouds' lists say nothing of their models but the names
    endpoint = http_endpoint(
        name, provider, places_of(settings)[0], base_url, choose_dialect(name, provider, settings.dialect)
    )
    return Asking(endpoint, first_address(provider.endpoint, settings) or base_url, provider.word, time.time)


def missing_keys(config: Config, served: Mapping[str, Served]) -> dict[str, str]:
    """Provider → words, for each that needs a key and has none: no request to it can succeed."""
    found: dict[str, str] = {}
    for name, settings in config.providers.items():
        facts = served[name].provider.endpoint
        facts = facts.alternative(settings.endpoint) if settings.endpoint else facts
        elsewhere = settings.base_url or settings.endpoints or shows_header(settings)  # whoever says more knows better
        if facts.needs_key and not elsewhere and not settings.api_key and not any(settings.api_keys):
            found[name] = f"it has no key; set {facts.key_env[0]}, or `providers.{name}.api_key`"
    return found


async def _serve_codex(name: str, provider: Provider, settings: ProviderConfig, limits: AnswerLimits) -> Served:
    """Codex retries its own upstream, so nothing here does."""
    from isthmus.upstream.codex.backend import open_codex
    from isthmus.upstream.codex.models import read_models

    backend = await open_codex(name, codex_options(settings), limits)
    total = settings.timeouts.total
    return Served(name, provider, backend, total, list_models=lambda: read_models(backend, provider))


def codex_options(settings: ProviderConfig) -> CodexOptions:
    from isthmus.upstream.codex.options import CodexOptions, find_binary, make_home

    codex = settings.codex
    find_binary(codex.binary)  # one that was never there is told at once; one that goes missing later may come back
    return CodexOptions(
        binary=codex.binary,
        home=make_home(codex.home) if codex.home else None,
        cwd=Path(codex.folder).expanduser().absolute() if codex.own_tools else None,
        environment=codex.environment,
        own_tools=codex.own_tools,
        sandbox=codex.sandbox,
        approvals="accept" if codex.approvals == "allow" else "decline",
        max_threads=codex.max_threads,
        hold=codex.hold,
        idle=codex.idle,
        silence=max(settings.timeouts.first_byte, settings.timeouts.idle),
        client_version=__version__,
        handshake_timeout=codex.handshake,
    )
