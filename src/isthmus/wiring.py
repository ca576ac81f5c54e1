"""Config → a running gateway. The one module that knows every driver."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import random
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isthmus import __version__
from isthmus.addresses import fill_gaps, fill_in, gaps_of, host_of, is_named_private, may_get_key
from isthmus.bridge.bounds import Bounds
from isthmus.bridge.capabilities import Dialect
from isthmus.bridge.limits import AnswerLimits, RequestLimits, take_limits
from isthmus.conduct.aside import Aside
from isthmus.config.keys import first_address, shows_header, tell_key
from isthmus.config.known import DEMO, tell_unserved
from isthmus.config.schema import Checks, Config, ProviderConfig, draws
from isthmus.config.secrets import configured_secrets
from isthmus.errors import ConfigError
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.retention import Retention, keep_pruning
from isthmus.gateway.runs import RunLimits
from isthmus.gateway.settings import Settings
from isthmus.log import tell
from isthmus.observe.everybody import Everybody
from isthmus.observe.log import LogObserver
from isthmus.observe.metrics.meters import Meters
from isthmus.ports import Messenger, Observer, Store, Workers
from isthmus.ports.tools import HostedTool
from isthmus.providers import Provider, load_provider
from isthmus.providers.dialects import choose_dialect, facts_in, more_dialects
from isthmus.providers.schema import COMPUTED, EndpointFacts
from isthmus.store.envelope_key import envelope_key
from isthmus.store.open import database_path, open_store
from isthmus.upstream.asking import Asking
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.pool import PooledBackend
from isthmus.upstream.retry import RetryingBackend, RetryRule
from isthmus.upstream.wire import EMBEDDINGS, IMAGE_EDITS, IMAGES, MAX_QUEUED, Elsewhere, Endpoint
from isthmus.values.problems import as_error
from isthmus.wiring_observe import SCRUB, SCRUBBER, open_tracer
from isthmus.wiring_tools import LaterTool, open_hosted
from isthmus.wiring_watch import metrics_observer, open_otel, store_timer, watch_parts
from isthmus.workers.checker import CHECK, RUNNER, PooledChecker
from isthmus.workers.pool import PoolOptions, WorkerPool

if TYPE_CHECKING:  # loaded only where somebody uses it
    from isthmus.gateway.deliver import Deliveries
    from isthmus.tools.images import Studio
    from isthmus.upstream.codex.options import CodexOptions
    from isthmus.wiring_search import Searching

log = logging.getLogger("isthmus.wiring")


@asynccontextmanager
async def running_gateway(config: Config, meters: Meters | None = None) -> AsyncIterator[Gateway]:
    """A gateway with everything it needs, closed in the right order. `meters`: where it is counted what it does."""
    async with AsyncExitStack() as stack:
        workers, aside = open_workers(config.checks), Aside()
        stack.push_async_callback(workers.aclose)
        served: dict[str, Served] = {}
        for name, settings in config.providers.items():
            served[name] = await serve_provider(name, _with_queue(settings), config, stack, workers, aside)
            stack.push_async_callback(served[name].backend.aclose)  # also if something further on cannot start
        if not served:
            raise ConfigError("no provider is configured; run `isthmus init`, or set a key such as DEEPSEEK_API_KEY")
        key = _envelope_key(config.store.url)  # before the store: on a new machine it makes the folder for both
        store = open_store(
            config.store.url,
            durability=config.store.durability,
            max_event_bytes=config.background.max_events,
            timed=store_timer(meters),
        )
        deliveries = _open_deliveries(config, store) if config.webhooks.endpoints else None
        observers: list[Observer] = [LogObserver()]
        tracer = None
        if config.trace.capture != "off":
            tracer = open_tracer(config, key, workers)
            observers.append(tracer)
            stack.push_async_callback(tracer.aclose)
        if meters is not None:
            watch_parts(meters, workers, store, tracer)
            observers.append(metrics_observer(config, meters, served))
        if config.otel.enabled:
            otel = open_otel(config, meters, served, __version__)
            stack.push_async_callback(otel.aclose)
            observers.append(otel)
        searching = _open_search(config, workers) if config.search.backend else None
        studio = _later_studio(config, served, stack, aside)
        hosted = open_hosted(config, (*(() if searching is None else (searching.tool,)), *_drawing(studio)))
        gateway = Gateway(
            Directory(
                served=served,
                default=config.models.default or None,
                aliases=_aliases(config),
                fallbacks=config.models.fallbacks,
                unserved=lambda name: tell_unserved(name, [Path(folder) for folder in config.provider_folders]),
            ),
            store,
            checker=PooledChecker(workers, cache=config.checks.cache),
            settings=Settings(
                strict=config.plan.strict,
                repair_budget=config.plan.repair_budget,
                max_chain=config.store.max_chain,
                envelope_key=key,
                bounds=schema_bounds(config.checks),
                limits=take_limits(RequestLimits, config.limits),
                keep_lessons=config.lessons.keep,
                keep_named=config.store.idempotency,
                refresh_words=config.models.refresh,
                runs=RunLimits(
                    background=config.background.max_running,
                    queued=config.background.max_queued,
                    lease=config.background.lease,
                    told=config.limits.max_told,
                ),
                tools=hosted.limits,
            ),
            now=time.time,
            new_id=new_id,
            observer=observers[0] if len(observers) == 1 else Everybody(observers),
            aside=aside,
            deliveries=deliveries,
            tracing=tracer,
            studio=studio,
            hosted=hosted,
            search=None if searching is None else searching.standalone,
        )
        stack.push_async_callback(gateway.aclose)
        gateway.words.start()
        if deliveries is not None:
            deliveries.start()
        rule = Retention(
            config.store.keep_days,
            config.store.max_bytes,
            config.background.keep_events,
            config.store.keep_conversation_days,
        )
        if rule.limited:
            pruning = asyncio.create_task(keep_pruning(store, rule, time.time), name="prune the store")
            stack.callback(pruning.cancel)
        yield gateway


def _open_search(config: Config, workers: Workers) -> Searching:
    from isthmus.wiring_search import open_search

    return open_search(config, workers)


def _open_deliveries(config: Config, store: Store) -> Deliveries:
    from isthmus.config.check_webhooks import check_webhooks, secret_bytes
    from isthmus.gateway.announce import Announcer
    from isthmus.gateway.deliver import Deliveries, DeliveryRule
    from isthmus.upstream.webhook import WebhookMessenger

    webhooks = config.webhooks
    errors = [problem for problem in check_webhooks(webhooks) if problem.severity == "error"]
    if errors:  # also where nobody has checked the configuration before: nobody is called by mistake
        raise as_error(errors)
    secrets = configured_secrets(config)
    messengers: dict[str, Messenger] = {}
    for name, endpoint in webhooks.endpoints.items():
        keys = [key for key in map(secret_bytes, (endpoint.secret, endpoint.previous_secret)) if key]
        messengers[name] = WebhookMessenger(
            name,
            endpoint.url,
            keys,
            timeout=webhooks.timeout,
            at_once=webhooks.at_once,
            anywhere=is_named_private(endpoint.url, webhooks.private_hosts),
            more_secrets=secrets,
        )
    wanted = {name: frozenset(endpoint.events) for name, endpoint in webhooks.endpoints.items()}
    rule = DeliveryRule(
        timeout=webhooks.timeout,
        at_once=webhooks.at_once,
        first_wait=webhooks.first_wait,
        longest_wait=webhooks.longest_wait,
        give_up=webhooks.give_up,
        keep=webhooks.keep,
    )
    announcer = Announcer(wanted, most=webhooks.max_queued, now=time.time, new_id=new_id)
    return Deliveries(store, messengers, announcer, holder=new_id("gw"), rule=rule, chance=random.random)


def _later_studio(
    config: Config, served: Mapping[str, Served], stack: AsyncExitStack, aside: Aside
) -> Callable[[], Studio] | None:
    """Who draws images, where somebody does: opened, and loaded, with the first of them, if it is the demo; anybody
    else at once, so that a mistake is told when it is made."""
    if not draws(config):
        return None

    @functools.cache
    def studio() -> Studio:
        from isthmus.wiring_images import open_studio

        return open_studio(config, served, stack, aside)

    if config.images.provider != DEMO:
        studio()
    return studio


def _drawing(studio: Callable[[], Studio] | None) -> Iterator[HostedTool]:
    if studio is None:
        return

    async def opened() -> HostedTool:
        from isthmus.tools.images import ImageTool

        return ImageTool(studio())

    yield LaterTool("image_generation", opened)


def open_workers(checks: Checks) -> WorkerPool:
    """The pool; it starts no process before the first job."""
    return WorkerPool(
        PoolOptions(
            runners={
                CHECK: RUNNER,
                SCRUB: SCRUBBER,
                "demo": "isthmus.demo.compose:run_encoded",
                "page": "isthmus.upstream.search.extract:run_encoded",
            },
            workers=checks.workers,
            slow_workers=checks.slow_workers,
            quick=checks.quick,
            deadline=checks.deadline,
            idle=checks.idle,
            memory=checks.memory,
            queue=checks.queue,
            wait=checks.wait,
        )
    )


def schema_bounds(checks: Checks) -> Bounds:
    return Bounds(**{name: getattr(checks, name) for name in Bounds.__struct_fields__})


def _aliases(config: Config) -> Mapping[str, str]:
    """With nothing but the demo model, every name means it: a client may keep the name it always sends."""
    if list(config.providers) == ["demo"] and "*" not in config.models.aliases and config.models.default:
        return {**config.models.aliases, "*": config.models.default}
    return config.models.aliases


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _envelope_key(store_url: str) -> bytes:
    """It lives as long as what is stored does."""
    database = database_path(store_url)
    return envelope_key(database) if database is not None else secrets.token_bytes(32)


def _with_queue(settings: ProviderConfig) -> ProviderConfig:
    """A gateway's callers do not know of each other: who would wait behind too many others is told so at once."""
    return settings if settings.max_queued is not None else msgspec.structs.replace(settings, max_queued=MAX_QUEUED)


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
    endpoints = [http_endpoint(name, provider, place, base_url, dialect) for place in _places(settings)]
    # Of all providers: what stands behind one address may well know the key of another.
    secrets = [*(secret for endpoint in endpoints for secret in endpoint.secrets()), *configured_secrets(config)]
    limits = take_limits(AnswerLimits, config.limits)
    places = [HttpBackend(endpoint, secrets, limits, aside) for endpoint in endpoints]
    wires = [place.wire for place in places]
    backend: HttpBackend | PooledBackend | RetryingBackend = places[0] if len(places) == 1 else PooledBackend(places)
    if settings.retries:
        backend = RetryingBackend(backend, RetryRule(retries=settings.retries))
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
        load=lambda: (sum(wire.load[0] for wire in wires), sum(wire.load[1] for wire in wires)),
    )


def server_asking(name: str, provider: Provider, settings: ProviderConfig, base_url: str = "") -> Asking | None:
    """How its server is asked about its models: the first of its places, with the key that requests show there."""
    if not settings.ask or not provider.word.paths or provider.capabilities().dialect == "codex":
        return None
    if provider.endpoint.auth in COMPUTED and not settings.api_key:
        return None  # a signer belongs to one wire, and clouds' lists say nothing of their models but the names
    endpoint = http_endpoint(
        name, provider, _places(settings)[0], base_url, choose_dialect(name, provider, settings.dialect)
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


def _places(settings: ProviderConfig) -> list[ProviderConfig]:
    """One set of settings for each key and each place."""
    keys = settings.api_keys or [settings.api_key]
    if not settings.endpoints:
        return [msgspec.structs.replace(settings, api_key=key) for key in keys]
    return [
        msgspec.structs.replace(
            settings,
            base_url=place.base_url,
            api_key=place.api_key or key,
            headers={**settings.headers, **place.headers},
        )
        for place in settings.endpoints
        for key in ([place.api_key] if place.api_key else keys)
    ]


def http_endpoint(
    name: str, provider: Provider, settings: ProviderConfig, base_url: str, dialect: Dialect = "chat"
) -> Endpoint:
    facts = provider.endpoint.alternative(settings.endpoint) if settings.endpoint else provider.endpoint
    chat, facts = facts, facts_in(provider, facts, dialect)
    own = fill_gaps(facts.base_url, settings.variables)
    base = settings.base_url or base_url or own
    if not base or gaps_of(base):
        missing = f"`variables` for {', '.join(gaps_of(base))}, or `base_url`," if base else "`base_url`"
        raise ConfigError(
            f"provider `{name}` has no address; set {missing} in `providers.{name}`", param=f"providers.{name}.base_url"
        )
    way = _way(facts, settings, base, dialect)
    direct = settings.proxy == "direct" or provider.name == "demo"  # the demo lives in this process
    endpoint = Endpoint(
        provider=name,
        url=way.url,
        headers=way.headers,
        others=dict(_other_ways(provider, chat, settings, base_url, dialect)),
        query=settings.query,
        proxy=settings.proxy if settings.proxy and not direct else None,
        trust_env=not direct and not settings.proxy,
        verify_tls=settings.verify_tls,
        max_connections=settings.max_connections,
        max_queued=settings.max_queued,
        patience=settings.timeouts,
        credential=_tell_credential(name, settings),
    )
    if facts.auth not in COMPUTED or settings.api_key or shows_header(settings):
        return endpoint
    return _signed(endpoint, facts, settings, own=own, base=base)


def _way(facts: EndpointFacts, settings: ProviderConfig, base: str, dialect: Dialect) -> Elsewhere:
    """Where a dialect is spoken, and with which headers."""
    base = base.rstrip("/")
    if dialect == "messages" and not re.search(r"/v\d+$", base):
        base = f"{base}/v1"  # vendors name this address without its version (claude-code#20416)
    headers = dict(facts.headers)
    if settings.api_key:  # also where none is needed: who sets a key wants it sent (`vllm serve --api-key`)
        if facts.auth in ("bearer", "none", *COMPUTED):
            headers["authorization"] = f"Bearer {settings.api_key}"
        else:
            headers[facts.auth] = str(settings.api_key)
    return Elsewhere(f"{base}/{facts.path.lstrip('/')}", {**headers, **settings.headers})


def _other_ways(
    provider: Provider, facts: EndpointFacts, settings: ProviderConfig, base_url: str, chosen: Dialect
) -> Iterator[tuple[str, Elsewhere]]:
    """Where the models are asked that are not spoken to as the rest, and where vectors are made."""
    for dialect in more_dialects(provider, chosen):
        there = facts_in(provider, facts, dialect)
        base = settings.base_url or base_url or fill_gaps(there.base_url, settings.variables)
        if base and not gaps_of(base):
            yield dialect, _way(there, settings, base, dialect)
    vectors, images = provider.capabilities().embeddings, provider.capabilities().images
    base = settings.base_url or base_url or fill_gaps(facts.base_url, settings.variables)
    more = {EMBEDDINGS: vectors.path if vectors.supported else ""}
    more |= {IMAGES: images.path, IMAGE_EDITS: images.edits_path} if images.supported else {}
    for name, path in more.items():
        if path and base and not gaps_of(base):
            yield name, _way(msgspec.structs.replace(facts, path=path), settings, base, "chat")


def _signed(endpoint: Endpoint, facts: EndpointFacts, settings: ProviderConfig, *, own: str, base: str) -> Endpoint:
    """The same with a signer, at the file's own host and at no other: a token is as good as a key."""
    if not may_get_key(own, base):
        raise ConfigError(
            f"provider `{endpoint.provider}` is asked at another host than `{host_of(own)}`, and nothing is signed for "
            "that; write a provider file with its address",
            param=f"providers.{endpoint.provider}.base_url",
        )
    from isthmus.upstream.sign.open import open_signer

    filled = {name: fill_in(text, settings.variables) for name, text in facts.sign.items()}
    told = f"what `{facts.auth}` makes of the credentials on this machine"
    return replace(endpoint, signer=open_signer(facts.auth, filled, endpoint, os.environ), credential=told)


def _tell_credential(name: str, settings: ProviderConfig) -> str:
    """What a request shows of us, told without showing it."""
    if not settings.api_key and shows_header(settings):
        return f"what stands in `headers` or `query` of `providers.{name}`"
    return tell_key(name, settings.api_key)
