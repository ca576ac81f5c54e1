"""A collector of OpenTelemetry for tests: OTLP over HTTP on a socket of its own, read with the official messages.

with Collector.running() as collector: ...   # `collector.url` is the endpoint
    spans = collector.spans(4)               # waits until there are so many
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from waiting import until

ANSWERS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
KINDS = {1: "internal", 2: "server", 3: "client"}


@dataclass(frozen=True)
class Span:
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    """Empty: it has none."""
    began: int
    ended: int
    failed: bool
    attributes: dict[str, Any]
    events: tuple[str, ...]


@dataclass
class Collector:
    url: str
    refuse: int = 0
    """The HTTP status that everything is answered with; 0: it is taken."""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """Path, headers and body of each."""

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Collector]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        collector = cls(f"http://127.0.0.1:{server.server_port}")
        server.collector = collector  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            server.server_close()

    def messages(self, path: str) -> list[Any]:
        return [ANSWERS[path].FromString(body) for at, _, body in list(self.requests) if at == path]

    def told(self) -> list[Span]:
        return [
            _span(span)
            for message in self.messages("/v1/traces")
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def spans(self, count: int) -> list[Span]:
        """At least so many, in the order in which they began; waits for them."""
        until(lambda: len(self.told()) >= count, lambda: f"there are only {[each.name for each in self.told()]}")
        return sorted(self.told(), key=lambda span: span.began)

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], float, int]]]:
        """Name → of each series, as last told: its attributes, sum and count."""
        found: dict[str, list[tuple[dict[str, Any], float, int]]] = {}
        for message in self.messages("/v1/metrics"):
            for resource in message.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = metric.histogram.data_points
                        found[metric.name] = [(_plain(each.attributes), each.sum, each.count) for each in points]
        return found

    def resource(self) -> dict[str, Any]:
        message = self.messages("/v1/traces")[0]
        return _plain(message.resource_spans[0].resource.attributes)

    @property
    def everything(self) -> bytes:
        return b"".join(body for _, _, body in self.requests)


def _span(span: Any) -> Span:
    return Span(
        name=span.name,
        kind=KINDS[span.kind],
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        failed=span.status.code == 2,
        attributes=_plain(span.attributes),
        events=tuple(event.name for event in span.events),
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        collector: Collector = self.server.collector  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not collector.refuse:
            collector.requests.append((self.path, headers, body))
        self.send_response(collector.refuse or 200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass
