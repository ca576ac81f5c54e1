from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from isthmus.errors import UpstreamFailed
from isthmus.observe.metrics.labels import Models
from isthmus.observe.otel import names
from isthmus.observe.otel.instruments import InstrumentObserver
from isthmus.ports import Accepted, Ended


class Numbers:
    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        meter = MeterProvider([self._reader], shutdown_on_exit=False).get_meter("test")
        self.observer = InstrumentObserver(meter, Models(lambda provider: {"v4"}), vendors={"main": "deepseek"})

    def read(self) -> dict[str, list[tuple[dict[str, Any], float, tuple[float, ...]]]]:
        """Name → of each series its attributes, its sum and the buckets that it has."""
        data: Any = self._reader.get_metrics_data()
        found: dict[str, Any] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics if data is not None else ():
            points = metric.data.data_points
            found[metric.name] = [(dict(each.attributes), each.sum, tuple(each.explicit_bounds)) for each in points]
        return found


def ended(**more: Any) -> Ended:
    facts: dict[str, Any] = {"provider": "main", "model": "v4", "failure": None, "usage": None, "attempts": 1}
    facts |= {"price": None, "seconds": 2.5, "first_token": None, "degraded": 0, "ignored": 0}
    return Ended(**{"id": "resp_1", "owner": "local", "outcome": "completed", **facts, **more})


WHO = {names.OPERATION: "chat", names.PROVIDER: "deepseek", names.REQUEST_MODEL: "v4"}


def test_a_run_is_told_under_the_names_and_in_the_buckets_of_the_conventions() -> None:
    numbers = Numbers()
    usage = {"input_tokens": 100, "output_tokens": 21}
    numbers.observer.tell(ended(usage=usage, settled=0.5, first_token=1.0, batches=9))
    found = numbers.read()
    assert found[names.REQUEST_DURATION] == [(WHO, 2.5, names.SECONDS)]
    assert found[names.OPERATION_DURATION] == [(WHO, 2.0, names.SECONDS)]
    assert found[names.FIRST_TOKEN] == [(WHO, 1.0, names.FIRST_TOKENS)]
    assert found[names.PER_TOKEN] == [(WHO, pytest.approx(0.05), names.PER_TOKENS)]
    tokens = {said[names.TOKEN_TYPE]: total for said, total, _ in found[names.TOKEN_USAGE]}
    assert tokens == {"input": 100, "output": 21}


def test_a_failure_has_its_code_if_that_is_ours_and_a_model_its_name_if_that_is_known() -> None:
    numbers = Numbers()
    numbers.observer.tell(ended(model="sk-secret", failure=UpstreamFailed("sk-secret", code="sk-secret")))
    ((said, _, _),) = numbers.read()[names.REQUEST_DURATION]
    assert said == {**WHO, names.REQUEST_MODEL: "other", names.ERROR: "other"}


def test_nothing_but_an_end_is_counted() -> None:
    numbers = Numbers()
    numbers.observer.tell(Accepted("resp_1", 0.1))
    assert numbers.read() == {}
