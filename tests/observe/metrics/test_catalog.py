"""The catalogue keeps the rules that Prometheus sets for names, and our own: no label that a client can fill."""

from __future__ import annotations

import re

import pytest

from isthmus.observe.metrics.catalog import CATALOG, Metric

LABELS = {
    *("door", "provider", "model", "status", "kind", "action", "code", "queue", "state", "endpoint", "operation"),
    *("result", "version"),
}
"""Each from a set that we know; none that says who asks."""

every_metric = pytest.mark.parametrize("metric", CATALOG.values(), ids=CATALOG.keys())


@every_metric
def test_its_name_says_what_it_is(metric: Metric) -> None:
    assert re.fullmatch(r"(isthmus|process)_[a-z][a-z_]*[a-z]", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.help.endswith(".")


@every_metric
def test_only_histograms_have_buckets_and_these_grow(metric: Metric) -> None:
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))


@every_metric
def test_no_label_says_who_asks(metric: Metric) -> None:
    assert set(metric.labels) <= LABELS
    assert not LABELS & {"owner", "key", "caller", "client", "path", "id"}


@every_metric
def test_only_a_gauge_may_be_anything_but_a_sum_over_processes(metric: Metric) -> None:
    assert metric.over == "sum" or metric.kind == "gauge"
