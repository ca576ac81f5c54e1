"""Config → a running gateway. The one module that knows every driver."""

from __future__ import annotations

import asyncio
import functools
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isthmus import __version__
from isthmus.bridge.choose import Choice
from isthmus.bridge.limits import RequestLimits, take_limits
from isthmus.conduct.aside import Aside
from isthmus.config.known import DEMO, tell_unserved
from isthmus.config.schema import Config, ProviderConfig, draws
from isthmus.errors import ConfigError
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.retention import Retention, keep_pruning
from isthmus.gateway.runs import RunLimits
from isthmus.gateway.settings import Settings
from isthmus.observe.everybody import Everybody
from isthmus.observe.log import LogObserver
from isthmus.observe.metrics.meters import Meters
from isthmus.ports import Observer, Store, Workers
from isthmus.ports.tools import HostedTool
from isthmus.store.envelope_key import envelope_key
from isthmus.store.open import database_path, open_store
from isthmus.upstream.breaker import FAILURES
from isthmus.upstream.wire import MAX_QUEUED
from isthmus.wiring_endpoints import http_endpoint
from isthmus.wiring_observe import open_tracer
from isthmus.wiring_providers import codex_options, missing_keys, serve_provider, server_asking
from isthmus.wiring_tools import LaterTool, open_hosted
from isthmus.wiring_watch import metrics_observer, open_otel, store_timer, watch_parts
from isthmus.wiring_workers import open_workers, schema_bounds
from isthmus.workers.checker import PooledChecker

if TYPE_CHECKING:  # loaded only where somebody uses it
    from isthmus.gateway.deliver import Deliveries
    from isthmus.hooks.hooked import Hooks
    from isthmus.ports.admission import Admission
    from isthmus.tools.images import Studio
    from isthmus.wiring_search import Searching

__all__ = [
    "codex_options",
    "http_endpoint",
    "missing_keys",
    "new_id",
    "open_workers",
    "running_gateway",
    "schema_bounds",
    "serve_provider",
    "server_asking",
]


@asynccontextmanager
async def running_gateway(config: Config, meters: Meters | None = None) -> AsyncIterator[Gateway]:
    """A gateway with everything it needs, closed in the right order. `meters`: where it is counted what it does."""
    async with AsyncExitStack() as stack:
        workers, aside = open_workers(config.checks), Aside()
        stack.push_async_callback(workers.aclose)
        served: dict[str, Served] = {}
        for name, settings in config.providers.items():
            served[name] = await serve_provider(name, _as_gateway(settings), config, stack, workers, aside)
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
                choices=choices_of(config),
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
            admission=lambda: _open_gate(config, store, meters),
            hooks=_open_hooks(config, aside) if config.hooks.uses else None,
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
            config.usage.keep_days,
        )
        if rule.limited:
            pruning = asyncio.create_task(keep_pruning(store, rule, time.time), name="prune the store")
            stack.callback(pruning.cancel)
        yield gateway


def _open_hooks(config: Config, aside: Aside) -> Hooks:
    from isthmus.wiring_hooks import open_hooks

    return open_hooks(config, aside)


def _open_search(config: Config, workers: Workers) -> Searching:
    from isthmus.wiring_search import open_search

    return open_search(config, workers)


def _open_gate(config: Config, store: Store, meters: Meters | None) -> Admission:
    from isthmus.wiring_limits import open_gate

    return open_gate(config, store, new_id, meters)


def _open_deliveries(config: Config, store: Store) -> Deliveries:
    from isthmus.wiring_webhooks import open_deliveries

    return open_deliveries(config, store, new_id)


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


def _aliases(config: Config) -> Mapping[str, str]:
    """With nothing but the demo model, every name means it: a client may keep the name it always sends."""
    if list(config.providers) == ["demo"] and "*" not in config.models.aliases and config.models.default:
        return {**config.models.aliases, "*": config.models.default}
    return config.models.aliases


def choices_of(config: Config) -> dict[str, Choice]:
    """Names that stand for several targets."""
    return {
        name: Choice(tuple(choice.targets), tuple(choice.weights), choice.by)
        for name, choice in config.models.choices.items()
    }


def new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _envelope_key(store_url: str) -> bytes:
    """It lives as long as what is stored does."""
    database = database_path(store_url)
    return envelope_key(database) if database is not None else secrets.token_bytes(32)


def _as_gateway(settings: ProviderConfig) -> ProviderConfig:
    """A gateway's callers do not know of each other: who would wait behind too many others, or for somebody who is out
    of order, is told so at once."""
    breaker = settings.breaker
    return msgspec.structs.replace(
        settings,
        max_queued=MAX_QUEUED if settings.max_queued is None else settings.max_queued,
        breaker=msgspec.structs.replace(breaker, failures=FAILURES) if breaker.failures is None else breaker,
    )
