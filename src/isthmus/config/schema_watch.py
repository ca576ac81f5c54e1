"""What a configuration may say of what can be watched: the log, traces, Prometheus, and collectors of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from isthmus.config.section import Bytes, Count, Seconds, Section, Text, Timeout


class Log(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written to stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important event that is written."""
    format: Literal["text", "json"] = "text"
    """Lines for people, or one JSON object per line."""


class Trace(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is remembered of each request, apart from the responses: decisions, times, sizes, errors."""

    capture: Literal["off", "metadata", "full"] = "metadata"
    """`metadata`: sizes and hashes of every field and message, and no content. `full`: the content, too, within
    `max_content` and scrubbed."""
    full_for: list[Text] = []
    """Owners, or ids of keys as the log tells them, whose requests are captured with their content."""
    unstored: bool = False
    """Whether `full` also means requests with `store: false`."""
    max_content: Bytes = 1_000_000
    """Content of one request, all bodies together, that is captured; what is longer is left out, and the trace says
    so."""
    scrub: list[Text] = []
    """Regular expressions: what they find in any text is replaced before a trace is stored. They run in a worker
    process, within `checks.deadline`."""
    max_age: Seconds = 2_592_000.0
    """How long a trace is kept; 0: for ever."""
    max_bytes: Bytes = 1_000_000_000
    """Size of the file above which the oldest go; 0: no limit. Beside a store in memory at most 64 MB."""
    max_queued: Count = 2_000
    """Traces that may wait to be written; more are lost, and counted."""
    max_queued_bytes: Bytes = 64_000_000
    """Bytes of the requests that they hold on to meanwhile; likewise."""


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
