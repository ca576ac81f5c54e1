"""Config → what a gateway stands on, and what outlives a configuration: the store, the workers, and those who watch.

It is made of the first configuration. What another one changes of it counts after a restart (`config.reload`).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isthmus import __version__
from isthmus.bridge.limits import take_limits
from isthmus.chance import dated_text
from isthmus.conduct.aside import Aside
from isthmus.config.schema import Config
from isthmus.config.schema import Store as StoreSettings
from isthmus.config.secrets import configured_secrets
from isthmus.gateway.directory import Served
from isthmus.gateway.retention import Retention, keep_pruning
from isthmus.observe.everybody import Everybody
from isthmus.observe.log import LogObserver
from isthmus.observe.metrics.meters import Meters
from isthmus.observe.traces.tracer import Tracer
from isthmus.ports import Observer, Store
from isthmus.store.envelope_key import envelope_key
from isthmus.store.open import ServerLimits, database_path, is_server, open_store, shared_key
from isthmus.wiring_observe import open_tracer
from isthmus.wiring_watch import Names, metrics_observer, open_otel, store_timer, watch_parts
from isthmus.workers.checker import PooledChecker
from isthmus.workers.pool import WorkerPool

if TYPE_CHECKING:  # loaded only where somebody uses it
    from isthmus.access.gate import Gate
    from isthmus.gateway.deliver import Deliveries
    from isthmus.ports.admission import Admission


class LaterGate:
    """What everybody passes, opened and loaded with the first who does. What it has counted goes on to be so when the
    limits change."""

    def __init__(self, config: Config, store: Store, meters: Meters | None) -> None:
        self._config = config
        self._store = store
        self._meters = meters
        self._gate: Gate | None = None

    def __call__(self) -> Admission:
        from isthmus.wiring_limits import open_gate

        self._gate = open_gate(self._config, self._store, new_id, self._meters)
        return self._gate

    def adopt(self, config: Config) -> None:
        self._config = config
        if self._gate is not None:
            from isthmus.wiring_limits import gate_settings

            self._gate.adopt(gate_settings(config))


@dataclass(frozen=True, slots=True)
class Lasting:
    key: bytes
    store: Store
    workers: WorkerPool
    aside: Aside
    checker: PooledChecker
    observer: Observer
    tracer: Tracer | None
    deliveries: Deliveries | None
    names: Names
    gate: LaterGate

    def adopt(self, config: Config, served: Mapping[str, Served]) -> None:
        """Another configuration counts now."""
        self.names.adopt(config, served)
        self.gate.adopt(config)
        if self.tracer is not None:
            self.tracer.learn(configured_secrets(config))


def open_lasting(
    config: Config,
    served: Mapping[str, Served],
    workers: WorkerPool,
    aside: Aside,
    meters: Meters | None,
    stack: AsyncExitStack,
) -> Lasting:
    key = _envelope_key(config.store)  # before the store: on a new machine it makes the folder for both
    store = open_store(
        config.store.url,
        durability=config.store.durability,
        max_event_bytes=config.background.max_events,
        timed=store_timer(meters),
        server=take_limits(ServerLimits, config.store),
    )
    deliveries = _open_deliveries(config, store) if config.webhooks.endpoints else None
    observers: list[Observer] = [LogObserver()]
    tracer, names = None, Names()
    names.adopt(config, served)
    if config.trace.capture != "off":
        tracer = open_tracer(config, key, workers)
        observers.append(tracer)
        stack.push_async_callback(tracer.aclose)
    if meters is not None:
        watch_parts(meters, workers, store, tracer)
        observers.append(metrics_observer(config, meters, names))
    if config.otel.enabled:
        otel = open_otel(config, meters, served, names, __version__)
        stack.push_async_callback(otel.aclose)
        observers.append(otel)
    return Lasting(
        key=key,
        store=store,
        workers=workers,
        aside=aside,
        checker=PooledChecker(workers, cache=config.checks.cache),
        observer=observers[0] if len(observers) == 1 else Everybody(observers),
        tracer=tracer,
        deliveries=deliveries,
        names=names,
        gate=LaterGate(config, store, meters),
    )


def start_pruning(config: Config, store: Store) -> asyncio.Task[None] | None:
    rule = Retention(
        config.store.keep_days,
        config.store.max_bytes,
        config.background.keep_events,
        config.store.keep_conversation_days,
        config.usage.keep_days,
    )
    if not rule.limited:
        return None
    return asyncio.create_task(keep_pruning(store, rule, time.time), name="prune the store")


def new_id(prefix: str) -> str:
    return f"{prefix}_{dated_text()}"


def _open_deliveries(config: Config, store: Store) -> Deliveries:
    from isthmus.wiring_webhooks import open_deliveries

    return open_deliveries(config, store, new_id)


def _envelope_key(store: StoreSettings) -> bytes:
    """Given, or kept with the store: it lives as long as what is stored does."""
    if store.envelope_key:
        return store.envelope_key.encode()
    if is_server(store.url):
        return shared_key(store.url, server=take_limits(ServerLimits, store))
    database = database_path(store.url)
    return envelope_key(database) if database is not None else secrets.token_bytes(32)
