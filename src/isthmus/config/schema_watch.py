"""What a configuration may say of those who watch: Prometheus, and collectors of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from isthmus.config.section import Count, Section, Text, Timeout


class Metrics(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers for Prometheus, at `/metrics`."""

    enabled: bool = True
    """Whether anything is counted; if not, `/metrics` is a 404."""
    key: str = ""
    """A key for `/metrics` alone, and for nothing else: it and `server.admin_key` open it then, and no other. Without
    it, and without an admin key, one of `server.api_keys` does, if there are any."""
    key_file: str = ""
    """A file with that key."""
    max_models: Count = 100
    """Models with numbers of their own, the first ones that are used; all others are `other` together, and so are names
    that only clients know."""


class Otel(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Spans and metrics for a collector of OpenTelemetry, over OTLP and HTTP. The standard `OTEL_*` variables count
    where nothing is said here. Needs `pip install 'isthmus[otel]'`."""

    enabled: bool = False
    """Whether anything is sent."""
    endpoint: str = ""
    """The collector, as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are added. Default:
    `OTEL_EXPORTER_OTLP_ENDPOINT`, or that very address."""
    headers: Mapping[str, str] = {}
    """Headers for it, such as its key."""
    service_name: Text = "isthmus"
    """What we are called there, unless `OTEL_SERVICE_NAME` says otherwise."""
    traces: bool = True
    """Whether spans are sent."""
    metrics: bool = True
    """Whether metrics are."""
    sample: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """The share of requests that have spans; where a client sends `traceparent`, it decides."""
    interval: Timeout = 60.0
    """How often metrics are sent."""
    max_queued: Count = 2048
    """Spans that may wait to be sent; more are dropped and counted."""
    pass_on: list[Text] = []
    """Providers that are sent a `traceparent` of ours: name only servers of your own, others have no use for it."""
