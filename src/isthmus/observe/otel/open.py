"""The way to a collector: OTLP over HTTP, in threads of the SDK's own, with a bounded queue.

What is not said in the configuration the SDK takes from the standard `OTEL_*` variables. What it has to complain of,
such as a collector that is not there, goes to our log, and costs no request anything.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from isthmus.log import tell
from isthmus.observe.everybody import Everybody
from isthmus.observe.metrics.labels import Models
from isthmus.observe.metrics.meters import Labels
from isthmus.observe.otel import names
from isthmus.observe.otel.instruments import InstrumentObserver
from isthmus.observe.otel.spans import SpanObserver
from isthmus.ports import Fact, Observer

log: Final = logging.getLogger("isthmus.otel")

_BATCH: Final = 512
"""Spans that are sent at a time."""
_UNNAMED: Final = "unknown_service"
_LAST_WORDS: Final = 5.0
"""Seconds that what waits has at the end of the process."""


@dataclass(frozen=True, slots=True)
class OtelOptions:
    endpoint: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    service_name: str = "isthmus"
    version: str = ""
    traces: bool = True
    metrics: bool = True
    sample: float = 1.0
    interval: float = 60.0
    max_queued: int = 2048
    pass_on: frozenset[str] = frozenset()


class Otel:
    """An observer whose words leave the machine."""

    def __init__(self, options: OtelOptions, models: Models, vendors: Mapping[str, str]) -> None:
        """`vendors`: provider of the configuration → what the conventions call it."""
        self._complaints = _Complaints()
        resource = Resource.create({SERVICE_VERSION: options.version})
        if str(resource.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
            resource = resource.merge(Resource({SERVICE_NAME: options.service_name}))
        observers: list[Observer] = []
        self._spans: TracerProvider | None = None
        self._numbers: MeterProvider | None = None
        self._queue: _Queue | None = None
        if options.traces:
            sampler = ParentBased(TraceIdRatioBased(options.sample)) if options.sample < 1 else None
            self._spans = TracerProvider(sampler, resource, shutdown_on_exit=False)
            exporter = OTLPSpanExporter(_at(options, "traces"), headers=dict(options.headers) or None)
            self._queue = _Queue(exporter, options.max_queued)
            self._spans.add_span_processor(self._queue)
            tracer = self._spans.get_tracer("isthmus", options.version, schema_url=names.SCHEMA_URL)
            observers.append(SpanObserver(tracer, models, vendors=vendors, pass_on=options.pass_on))
        if options.metrics:
            sender = OTLPMetricExporter(_at(options, "metrics"), headers=dict(options.headers) or None)
            reader = PeriodicExportingMetricReader(sender, export_interval_millis=options.interval * 1000)
            self._numbers = MeterProvider([reader], resource, shutdown_on_exit=False)
            meter = self._numbers.get_meter("isthmus", options.version, schema_url=names.SCHEMA_URL)
            observers.append(InstrumentObserver(meter, models, vendors=vendors))
        self._observers = Everybody(observers)

    def tell(self, fact: Fact) -> None:
        self._observers.tell(fact)

    def look(self) -> Iterator[tuple[str, Labels, float]]:
        """What became of the spans, for `/metrics`."""
        if self._queue is not None:
            counts = self._queue.counts
            yield from (("isthmus_otel_spans_total", (result,), count) for result, count in counts.items())

    async def aclose(self) -> None:
        """Send what waits, for a moment; a collector that is not there holds nobody up."""
        parts = [part for part in (self._spans, self._numbers) if part is not None]
        over, loop = asyncio.Event(), asyncio.get_running_loop()

        def end() -> None:
            for part in parts:
                part.shutdown()
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(over.set)

        threading.Thread(target=end, name="isthmus-otel-end", daemon=True).start()
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await over.wait()
        except TimeoutError:
            tell(log, "warning", "otel.cut_off", seconds=_LAST_WORDS)
        else:
            self._complaints.close()


class _Queue(BatchSpanProcessor):  # type: ignore[misc]
    """Counts what leaves, what does not, and what found no room."""

    def __init__(self, exporter: SpanExporter, most: int) -> None:
        self.counts = {"sent": 0, "failed": 0, "dropped": 0}
        self._waiting = 0
        self._most = most
        super().__init__(_Counting(exporter, self), max_queue_size=most, max_export_batch_size=min(_BATCH, most))

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            if self._waiting >= self._most:
                self.counts["dropped"] += 1  # the oldest one goes for it
            else:
                self._waiting += 1
        super().on_end(span)

    def left(self, count: int, *, sent: bool) -> None:
        self._waiting = max(self._waiting - count, 0)
        self.counts["sent" if sent else "failed"] += count


class _Counting(SpanExporter):  # type: ignore[misc]
    def __init__(self, inner: SpanExporter, queue: _Queue) -> None:
        self._inner = inner
        self._queue = queue

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        self._queue.left(len(spans), sent=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _Complaints(logging.Handler):
    """What the SDK says, as events of our log, which knows what must not be said."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logger = logging.getLogger("opentelemetry")
        self._before = self._logger.propagate
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        facts: dict[str, Any] = {"reason": record.getMessage()}
        if record.exc_info is not None and record.exc_info[1] is not None:
            facts["error"] = type(record.exc_info[1]).__name__
        tell(log, "warning", "otel.trouble", **facts)

    def close(self) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._before
        super().close()


def _at(options: OtelOptions, signal: str) -> str | None:
    return f"{options.endpoint.rstrip('/')}/v1/{signal}" if options.endpoint else None
