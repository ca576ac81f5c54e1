"""What leaves the machine, as a collector on a real socket reads it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from collecting import Collector
from isthmus.observe.metrics.labels import Models
from isthmus.observe.otel import names
from isthmus.observe.otel import open as module
from isthmus.observe.otel.open import Otel, OtelOptions
from isthmus.ports import Answered, Received
from isthmus.testing.signals import PATIENCE
from observe.otel.test_instruments import ended
from waiting import until_soon

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


def opened(endpoint: str, **options: Any) -> Otel:
    return Otel(OtelOptions(endpoint=endpoint, **options), Models(lambda provider: {"v4"}), {"main": "deepseek"})


def counts(otel: Otel) -> dict[str, float]:
    return {labels[0]: value for _, labels, value in otel.look()}


def ask(otel: Otel, count: int = 1, traceparent: str = "") -> None:
    for number in range(count):
        otel.tell(Received(f"req_{number}", "local", "", "", "POST", "/v1/responses", 1, 0.0, traceparent))
        otel.tell(Answered(f"req_{number}", "", "local", "", "", "POST", "/v1/responses", 200, None, False, 0.1))


async def test_spans_and_metrics_arrive_with_who_we_are() -> None:
    with Collector.running() as collector:
        otel = opened(collector.url, version="1.2.3", headers={"x-key": "sk-collector"})
        ask(otel, traceparent=PARENT)
        otel.tell(ended())
        await otel.aclose()
        (span,) = collector.spans(1)
        assert (span.name, span.trace, span.parent) == ("POST /v1/responses", PARENT[3:35], PARENT[36:52])
        assert collector.resource()["service.name"] == "isthmus"
        assert collector.resource()["service.version"] == "1.2.3"
        assert names.REQUEST_DURATION in collector.metrics()
        assert {headers["x-key"] for _, headers, _ in collector.requests} == {"sk-collector"}
        scope = collector.messages("/v1/traces")[0].resource_spans[0].scope_spans[0]
        assert (scope.scope.name, scope.schema_url) == ("isthmus", names.SCHEMA_URL)
        assert counts(otel) == {"sent": 1, "failed": 0, "dropped": 0}


async def test_the_standard_variables_count_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with Collector.running() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of-the-environment")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "their-name")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        otel = opened("")
        ask(otel)
        otel.tell(ended())
        await otel.aclose()
        assert collector.resource()["service.name"] == "their-name"
        assert collector.resource()["deployment.environment.name"] == "test"
        assert {headers["x-key"] for _, headers, _ in collector.requests} == {"of-the-environment"}
        assert {path for path, _, _ in collector.requests} == {"/v1/traces", "/v1/metrics"}


@pytest.mark.parametrize(("without", "path"), [("traces", "/v1/metrics"), ("metrics", "/v1/traces")])
async def test_each_half_can_be_left_out(without: str, path: str) -> None:
    with Collector.running() as collector:
        otel = opened(collector.url, **{without: False})
        ask(otel)
        otel.tell(ended())
        await otel.aclose()
        assert {at for at, _, _ in collector.requests} == {path}


async def test_a_share_of_the_requests_is_traced_unless_a_client_decides() -> None:
    with Collector.running() as collector:
        otel = opened(collector.url, sample=0.0, metrics=False)
        ask(otel, 20)
        ask(otel, 2, PARENT)
        await otel.aclose()
        assert {span.parent for span in collector.told()} == {PARENT[36:52]}
        assert len(collector.told()) == 2


async def test_a_collector_that_refuses_costs_spans_and_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with Collector.running() as collector, caplog.at_level(logging.WARNING, "isthmus"):
        collector.refuse = 400
        otel = opened(collector.url, metrics=False)
        ask(otel, 3)
        await otel.aclose()
        assert counts(otel)["failed"] == 3
    assert "otel.trouble" in caplog.text


class Stuck(SpanExporter):
    """A collector that takes its time."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.got = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        assert self.go_on.wait(PATIENCE)
        self.got += len(spans)
        return SpanExportResult.SUCCESS


async def test_a_collector_that_takes_for_ever_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stuck = Stuck()
    monkeypatch.setattr(module, "OTLPSpanExporter", lambda *_, **__: stuck)
    monkeypatch.setattr(module, "_LAST_WORDS", 0.05)
    otel = opened("http://127.0.0.1:9", metrics=False)
    ask(otel, 3)
    with caplog.at_level(logging.WARNING, "isthmus"):
        await otel.aclose()
    assert "otel.cut_off" in caplog.text
    stuck.go_on.set()
    await until_soon(lambda: counts(otel)["sent"] == 3)
    otel._complaints.close()


def test_more_spans_than_may_wait_are_dropped_and_counted() -> None:
    stuck = Stuck()
    queue = module._Queue(stuck, 10)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(queue)
    tracer = provider.get_tracer("test")
    for _ in range(10):
        tracer.start_span("one").end()
    assert stuck.asked.wait(PATIENCE)
    for _ in range(100):
        tracer.start_span("more").end()
    assert queue.counts["dropped"] >= 90
    stuck.go_on.set()
    provider.shutdown()
    assert queue.counts["sent"] == stuck.got
    assert stuck.got + queue.counts["dropped"] >= 110
