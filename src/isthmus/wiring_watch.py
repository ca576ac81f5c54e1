"""Config → who watches a gateway: what is counted of its parts, and which words may name a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from isthmus.bridge.resolve import split_reference
from isthmus.config.schema import Config
from isthmus.errors import ConfigError
from isthmus.gateway.directory import Served
from isthmus.observe.metrics.labels import Models
from isthmus.observe.metrics.meters import Labels, Meters
from isthmus.observe.metrics.observer import MetricsObserver
from isthmus.observe.traces.tracer import Tracer
from isthmus.ports import Store
from isthmus.providers import Provider
from isthmus.providers.catalog import known_names
from isthmus.store.sqlite.store import SqliteStore
from isthmus.workers.pool import WorkerPool

if TYPE_CHECKING:  # an extra
    from isthmus.observe.otel.open import Otel


class Names:
    """The models of a provider that somebody other than a client names, in the configuration that counts now."""

    def __init__(self) -> None:
        self._served: Mapping[str, Served] = {}
        self._pairs: list[tuple[str, str]] = []
        self._found: dict[str, tuple[Provider, frozenset[str]]] = {}

    def adopt(self, config: Config, served: Mapping[str, Served]) -> None:
        models = config.models
        fallbacks = (name for names in models.fallbacks.values() for name in names)
        chosen = (target for choice in models.choices.values() for target in choice.targets)
        said = [models.default, *models.aliases.values(), *fallbacks, *chosen]
        self._pairs = [sides for name in [*said, *models.fallbacks] if (sides := split_reference(name)) is not None]
        self._served = served
        self._found = {}

    def __call__(self, provider: str) -> frozenset[str]:
        if provider not in self._served:  # it was taken out, and a request to it is still under way
            return frozenset()
        facts, known = self._served[provider].provider, self._found.get(provider)
        if known is None or known[0] is not facts:  # its server was heard
            own = {model.lower() for at, model in self._pairs if at == provider}
            known = self._found[provider] = (facts, known_names(facts) | own)
        return known[1]


def metrics_observer(config: Config, meters: Meters, names: Names) -> MetricsObserver:
    return MetricsObserver(meters, Models(names, config.metrics.max_models))


def open_otel(config: Config, meters: Meters | None, served: Mapping[str, Served], names: Names, version: str) -> Otel:
    """The way to a collector; to be closed."""
    otel = config.otel
    try:
        from isthmus.observe.otel.names import vendor_name
        from isthmus.observe.otel.open import Otel, OtelOptions
    except ModuleNotFoundError as error:
        words = "`otel.enabled` needs an extra: `pip install 'isthmus[otel]'`"
        raise ConfigError(words, param="otel.enabled") from error
    unknown = [name for name in otel.pass_on if name not in served]
    if unknown:
        words = f"`otel.pass_on` names `{unknown[0]}`, which is no provider here; these are: {', '.join(served)}"
        raise ConfigError(words, param="otel.pass_on")
    options = OtelOptions(
        endpoint=otel.endpoint,
        headers=otel.headers,
        service_name=otel.service_name,
        version=version,
        traces=otel.traces,
        metrics=otel.metrics,
        sample=otel.sample,
        interval=otel.interval,
        max_queued=otel.max_queued,
        pass_on=frozenset(otel.pass_on),
    )
    vendors = {name: vendor_name(each.provider.name) for name, each in served.items()}
    opened = Otel(options, Models(names, config.metrics.max_models), vendors)
    if meters is not None:
        meters.watch(opened.look)
    return opened


def store_timer(meters: Meters | None) -> Callable[[str, float], None]:
    """Who hears how long the store takes."""
    if meters is None:
        return lambda operation, seconds: None
    return partial(_note, meters.histogram("isthmus_store_seconds").note)


def watch_parts(meters: Meters, workers: WorkerPool, store: Store, tracer: Tracer | None) -> None:
    """What the parts below the gateway know of themselves."""

    def look() -> Iterator[tuple[str, Labels, float]]:
        yield "isthmus_queue_length", ("checks",), workers.waiting
        yield "isthmus_worker_processes", ("busy",), workers.busy
        yield "isthmus_worker_processes", ("idle",), len(workers.pids) - workers.busy
        yield "isthmus_workers_started_total", (), workers.started
        yield "isthmus_queue_length", ("store",), waiting_in(store)
        if tracer is not None:
            yield "isthmus_traces_dropped_total", (), tracer.capturing().lost
            yield "isthmus_trace_queue_length", (), tracer.waiting

    meters.watch(look)


def waiting_in(store: Store) -> int:
    """How much is to be written, or asked, that is not done yet."""
    if isinstance(store, SqliteStore):
        return store.writer.waiting
    return getattr(getattr(store, "pool", None), "waiting", 0)  # a server's driver is loaded by whoever uses it


def _note(note: Callable[[float, Labels], None], operation: str, seconds: float) -> None:
    note(seconds, (operation,))
