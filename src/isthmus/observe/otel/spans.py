"""Facts → spans: the request at our door, below it each asking of an upstream, below that the tools that it called.

A span says what was done and how it went, in words that we know; never what was said. A client's `traceparent` is the
parent of its request's span, if it is one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from isthmus.observe.metrics.labels import Models, code_label
from isthmus.observe.metrics.observer import MOST_OPEN, OUTCOMES, door_of
from isthmus.observe.otel import names
from isthmus.ports import (
    OUTGOING,
    Answered,
    AttemptFailed,
    Ended,
    Fact,
    FirstToken,
    Planned,
    Received,
    Retried,
    Sent,
    ToolRan,
)

_TRACEPARENT: Final = re.compile(
    r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(-.*)?"
)
_METHODS: Final = frozenset({"GET", "POST", "DELETE", "WS"})
_FIXED: Final = frozenset({"/v1/images/generations", "/v1/images/edits", "/v1/alpha/search"})
"""Paths that hold nothing of a client's."""
_BILLION: Final = 1_000_000_000


class SpanObserver:
    def __init__(
        self,
        tracer: Tracer,
        models: Models,
        *,
        vendors: Mapping[str, str],
        pass_on: frozenset[str] = frozenset(),
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """`vendors`: what the conventions call the providers of the configuration. `pass_on`: those that are told which
        trace they are asked in."""
        self._tracer = tracer
        self._models = models
        self._vendors = vendors
        self._pass_on = pass_on
        self._now = now
        self._requests: dict[str, Span] = {}
        self._runs: dict[str, _Run] = {}
        self._hear: dict[type[Any], Callable[[Any], None]] = {
            Received: self._received,
            Planned: self._planned,
            Sent: self._sent,
            Retried: self._retried,
            AttemptFailed: self._failed,
            FirstToken: self._spoke,
            ToolRan: self._ran,
            Ended: self._ended,
            Answered: self._answered,
        }

    def tell(self, fact: Fact) -> None:
        hear = self._hear.get(type(fact))
        if hear is not None:
            hear(fact)

    # ── requests ───────────────────────────────────────────────────────────────────────────────────

    def _received(self, fact: Received) -> None:
        began = self._now() - int(fact.seconds * _BILLION)
        if len(self._requests) >= MOST_OPEN:
            self._requests.pop(next(iter(self._requests))).end()
        self._requests[fact.request] = self._open_request(fact, began, fact.traceparent)

    def _answered(self, fact: Answered) -> None:
        run = self._runs.get(fact.id)
        if run is not None and not run.background:
            self._runs.pop(fact.id).over(self._now())  # it was planned, and never carried out
        span = self._requests.pop(fact.request, None)
        if span is None:  # refused before it was whole, or before it was known who asks
            span = self._open_request(fact, self._now() - int(fact.seconds * _BILLION), "")
        if fact.status:
            span.set_attribute(names.HTTP_STATUS, fact.status)
        if fact.failure is not None:
            span.set_attribute(names.ERROR, code_label(fact.failure.code))
        elif fact.status >= 500:
            span.set_attribute(names.ERROR, str(fact.status))
        if fact.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._now())

    def _open_request(self, fact: Received | Answered, began: int, traceparent: str) -> Span:
        method, route = fact.method if fact.method in _METHODS else "_OTHER", route_of(fact.path)
        said: dict[str, Any] = {names.HTTP_METHOD: method, names.REQUEST_ID: fact.request}
        if route:
            said |= {names.HTTP_ROUTE: route, names.DOOR: door_of(fact.path)}
        parent = read_traceparent(traceparent)
        context = None if parent is None else set_span_in_context(NonRecordingSpan(parent))
        name = f"{method} {route}" if route else method
        return self._tracer.start_span(name, context, SpanKind.SERVER, said, start_time=began)

    # ── what is made for them ──────────────────────────────────────────────────────────────────────

    def _planned(self, fact: Planned) -> None:
        if len(self._runs) >= MOST_OPEN:
            self._runs.pop(next(iter(self._runs))).over(self._now())
        run = self._runs[fact.id] = _Run(self._requests.get(fact.request))
        run.background = fact.background
        run.streams = fact.asked.get("stream") is True

    def _sent(self, fact: Sent) -> None:
        now = self._now()
        run = self._runs.get(fact.id)
        if run is None:
            run = self._runs[fact.id] = _Run(None)
        run.over(now)
        model = self._models.label(fact.provider, fact.model)
        operation = names.operation_of(fact.id)
        said: dict[str, Any] = {
            names.OPERATION: operation,
            names.PROVIDER: self._vendors.get(fact.provider, fact.provider),
            names.PLACE: fact.provider,
            names.REQUEST_MODEL: model,
            names.REQUEST_STREAM: run.streams,
            names.RESPONSE_ID: fact.id,
            names.ATTEMPT: fact.attempt,
            names.WHY: fact.why,
        }
        parent = None if run.request is None else set_span_in_context(run.request)
        run.attempt = run.last = self._tracer.start_span(
            f"{operation} {model}", parent, SpanKind.CLIENT, said, start_time=now
        )
        run.sent_at, run.retries = now, 0
        OUTGOING.set(write_traceparent(run.attempt.get_span_context()) if fact.provider in self._pass_on else "")

    def _retried(self, fact: Retried) -> None:
        run = self._runs.get(fact.id)
        if run is not None and run.attempt is not None:
            run.retries += 1
            run.attempt.set_attribute(names.RETRIES, run.retries)
            said = {names.ERROR: code_label(fact.failure.code), "isthmus.elsewhere": fact.elsewhere}
            run.attempt.add_event("retry", said, self._now())

    def _failed(self, fact: AttemptFailed) -> None:
        run = self._runs.get(fact.id)
        if run is not None and run.attempt is not None:
            run.attempt.set_attribute(names.ERROR, code_label(fact.failure.code))
            run.attempt.set_status(Status(StatusCode.ERROR))
            run.over(self._now())

    def _spoke(self, fact: FirstToken) -> None:
        run = self._runs.get(fact.id)
        if run is not None and run.attempt is not None:
            run.attempt.set_attribute(names.FIRST_CHUNK, (self._now() - run.sent_at) / _BILLION)

    def _ran(self, fact: ToolRan) -> None:
        """Below the asking whose answer called it; that had spoken when the tool began."""
        now = self._now()
        began = now - int(fact.seconds * _BILLION)
        run = self._runs.get(fact.id)
        parent = None
        if run is not None:
            run.over(began)
            asked = run.last or run.request
            parent = None if asked is None else set_span_in_context(asked)
        kind = fact.call.kind
        said = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: kind, names.TOOL_CALL: fact.call.id}
        span = self._tracer.start_span(
            f"{names.EXECUTE_TOOL} {kind}", parent, SpanKind.INTERNAL, said, start_time=began
        )
        if fact.ran is None or fact.ran.failed:
            span.set_attribute(names.ERROR, "cancelled" if fact.ran is None else "tool_error")
            span.set_status(Status(StatusCode.ERROR))
        span.end(now)

    def _ended(self, fact: Ended) -> None:
        run = self._runs.pop(fact.id, None)
        if run is None:
            return
        said = _figures(fact)
        if run.attempt is not None:
            run.attempt.set_attributes(said)
            run.over(self._now() - int(fact.settled * _BILLION))
        if run.request is not None:
            run.request.set_attributes({**said, names.RESPONSE_ID: fact.id})


class _Run:
    __slots__ = ("attempt", "background", "last", "request", "retries", "sent_at", "streams")

    def __init__(self, request: Span | None) -> None:
        self.request = request
        self.attempt: Span | None = None
        """The asking that is under way."""
        self.last: Span | None = None
        """The last one, over or not."""
        self.sent_at = 0
        self.retries = 0
        self.background = self.streams = False

    def over(self, now: int) -> None:
        attempt, self.attempt = self.attempt, None
        if attempt is not None:
            attempt.end(max(now, self.sent_at))


def _figures(fact: Ended) -> dict[str, Any]:
    usage = fact.usage or {}
    spent, made = usage.get("input_tokens"), usage.get("output_tokens")
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens")
    thought = (usage.get("output_tokens_details") or {}).get("reasoning_tokens")
    said = {
        names.STATUS: fact.outcome if fact.outcome in OUTCOMES else None,
        names.INPUT_TOKENS: spent,
        names.OUTPUT_TOKENS: made,
        names.CACHED_TOKENS: cached,
        names.REASONING_TOKENS: thought,
        names.DEGRADED: fact.degraded,
        names.IGNORED: fact.ignored,
        names.COST: fact.price,
    }
    return {name: value for name, value in said.items() if value is not None}


def route_of(path: str) -> str:
    """The path without what a client puts into it; empty where it is none of ours."""
    door = door_of(path)
    if door == "other":
        return ""
    rest = path.split("/", 3)[3:]
    if door == "chat":
        rest = rest[0].split("/", 1)[1:] if rest else []
        return "/v1/chat/completions" + ("/{id}" if rest else "")
    if door in ("images", "search"):
        return path if path in _FIXED else ""
    return f"/v1/{door}" + ("/{id}" if rest else "")


def read_traceparent(given: str) -> SpanContext | None:
    """Where a client's own span is; `None` where it says nothing that can be read (W3C Trace Context)."""
    found = _TRACEPARENT.fullmatch(given.strip())
    if found is None or given.startswith("ff") or (given.startswith("00") and found[4]):
        return None
    flags = TraceFlags(int(found["flags"], 16) & TraceFlags.SAMPLED)
    context = SpanContext(int(found["trace"], 16), int(found["span"], 16), is_remote=True, trace_flags=flags)
    return context if context.is_valid else None


def write_traceparent(context: SpanContext) -> str:
    return (
        f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}" if context.is_valid else ""
    )
