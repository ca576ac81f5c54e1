"""The text is judged by Prometheus' own parsers: what was counted is what they read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from isthmus.observe.metrics.catalog import CATALOG
from isthmus.observe.metrics.exposition import CONTENT_TYPES, Format, choose_format, render
from isthmus.observe.metrics.meters import Meters

READERS = {"text": read_text, "openmetrics": read_openmetrics}
both = pytest.mark.parametrize("format", READERS)


def samples(meters: Meters, format: Format) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families: Iterable[Any] = READERS[format](render(meters.read(), format).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@both
def test_every_kind_is_read_as_it_was_counted(format: Format) -> None:
    meters = Meters()
    meters.counter("isthmus_requests_total").add(("responses", "deepseek", "v4", "completed"), 3)
    meters.watch(lambda: [("isthmus_websockets", (), 2.0), ("isthmus_queue_length", ("checks",), 0.5)])
    for value in (0.002, 0.3, 99.0):
        meters.histogram("isthmus_store_seconds").note(value, ("write",))
    found = samples(meters, format)
    labels = (("door", "responses"), ("model", "v4"), ("provider", "deepseek"), ("status", "completed"))
    assert found["isthmus_requests_total", labels] == 3
    assert found["isthmus_websockets", ()] == 2
    assert found["isthmus_queue_length", (("queue", "checks"),)] == 0.5
    where = ("operation", "write")
    assert found["isthmus_store_seconds_bucket", (("le", "0.0025"), where)] == 1
    assert found["isthmus_store_seconds_bucket", (("le", "0.5"), where)] == 2
    assert found["isthmus_store_seconds_bucket", (("le", "+Inf"), where)] == 3
    assert found["isthmus_store_seconds_count", (where,)] == 3
    assert found["isthmus_store_seconds_sum", (where,)] == pytest.approx(99.302)


@both
def test_every_metric_can_be_read(format: Format) -> None:
    meters = Meters()
    for metric in CATALOG.values():
        labels = metric.labels
        match metric.kind:
            case "counter":
                meters.counter(metric.name).add(labels, 1.5)
            case "histogram":
                meters.histogram(metric.name).note(0.7, labels)
            case _:
                meters.watch(lambda metric=metric: [(metric.name, metric.labels, 1e20)])
    families = {family.name: family for family in READERS[format](render(meters.read(), format).decode())}
    assert len(families) == len(CATALOG)
    for metric in CATALOG.values():
        family = families[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind, metric.help)


@both
@given(value=st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=20))
def test_whatever_stands_in_a_label_it_stays_in_its_place(format: Format, value: str) -> None:
    meters = Meters()
    meters.counter("isthmus_plan_decisions_total").add((value,), 2)
    assert samples(meters, format)["isthmus_plan_decisions_total", (("action", value),)] == 2


def test_openmetrics_says_where_it_ends() -> None:
    assert render(Meters().read(), "openmetrics").endswith(b"\n# EOF\n")
    assert b"# EOF" not in render(Meters().read(), "text")


OF_PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
OF_PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;"
    "version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "text"),
        ("*/*", "text"),
        ("text/html", "text"),
        (OF_PROMETHEUS_2, "openmetrics"),
        (OF_PROMETHEUS_3, "openmetrics"),
        ("application/openmetrics-text", "openmetrics"),
        ("Application/OpenMetrics-Text; version=1.0.0", "openmetrics"),
        ("application/openmetrics-text;version=2.0.0,text/plain;version=0.0.4;q=0.5", "text"),
        ("application/openmetrics-text;q=0.1,text/plain", "text"),
        ("application/openmetrics-text;q=0", "text"),
        ("application/openmetrics-text;q=much,text/plain;q=0.1", "text"),
        ("text/plain,application/openmetrics-text", "openmetrics"),
    ],
)
def test_whoever_asks_gets_what_it_likes_best(accept: str, expected: Format) -> None:
    assert choose_format(accept) == expected
    assert CONTENT_TYPES[expected].startswith("application/openmetrics-text" if expected != "text" else "text/plain")


@pytest.mark.measured
def test_a_gateway_with_a_hundred_models_is_told_in_milliseconds() -> None:
    meters = Meters()
    for model in range(100):
        for door in ("responses", "chat", "messages"):
            meters.histogram("isthmus_request_duration_seconds").note(1.0, (door, "p", f"model-{model}"))
            meters.counter("isthmus_requests_total").add((door, "p", f"model-{model}", "completed"))
        for name in ("isthmus_time_to_first_token_seconds", "isthmus_token_gap_seconds"):
            meters.histogram(name).note(0.1, ("p", f"model-{model}"))
    told, took = b"", []
    for _ in range(5):
        began = time.thread_time()  # its own time: the machine may be busy
        told = render(meters.read(), "openmetrics")
        took.append(time.thread_time() - began)
    assert told.count(b"\n") > 8_000
    assert min(took) < 0.03
