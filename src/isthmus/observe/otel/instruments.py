"""Facts → the metrics that the conventions name: of the request at our door, and of each model that was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Meter

from isthmus.observe.metrics.labels import Models, code_label
from isthmus.observe.otel import names
from isthmus.ports import Ended, Fact


class InstrumentObserver:
    def __init__(self, meter: Meter, models: Models, *, vendors: Mapping[str, str]) -> None:
        self._models = models
        self._vendors = vendors
        seconds = {"unit": "s", "explicit_bucket_boundaries_advisory": names.SECONDS}
        self._server = meter.create_histogram(names.REQUEST_DURATION, **seconds)
        self._client = meter.create_histogram(names.OPERATION_DURATION, **seconds)
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE, "{token}", explicit_bucket_boundaries_advisory=names.TOKENS
        )
        self._first = meter.create_histogram(
            names.FIRST_TOKEN, "s", explicit_bucket_boundaries_advisory=names.FIRST_TOKENS
        )
        self._each = meter.create_histogram(names.PER_TOKEN, "s", explicit_bucket_boundaries_advisory=names.PER_TOKENS)

    def tell(self, fact: Fact) -> None:
        if not isinstance(fact, Ended):
            return
        said: dict[str, Any] = {
            names.OPERATION: names.operation_of(fact.id),
            names.PROVIDER: self._vendors.get(fact.provider, fact.provider),
            names.REQUEST_MODEL: self._models.label(fact.provider, fact.model),
        }
        ended = {**said, names.ERROR: code_label(fact.failure.code)} if fact.failure is not None else said
        self._server.record(fact.seconds, ended)
        self._client.record(max(fact.seconds - fact.settled, 0.0), ended)
        usage = fact.usage or {}
        for kind in ("input", "output"):
            if tokens := usage.get(f"{kind}_tokens"):
                self._tokens.record(tokens, {**said, names.TOKEN_TYPE: kind})
        if fact.first_token is not None:
            self._first.record(fact.first_token, said)
            told, made = fact.seconds - fact.settled - fact.first_token, usage.get("output_tokens") or 0
            if made > 1 and fact.batches > 1:
                self._each.record(max(told, 0.0) / (made - 1), said)
