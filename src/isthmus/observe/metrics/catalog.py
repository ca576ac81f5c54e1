"""Every metric there is: its name, what it counts, its labels. Nothing is told at `/metrics` that does not stand here.

A counter only grows, a gauge is read when somebody asks, a histogram says how values are spread. Label values come from
sets that we know (doors, statuses, providers of the configuration, models that somebody other than a client names), so
that no client can make a series of its own, or put a word of its own into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Kind = Literal["counter", "gauge", "histogram"]
Over = Literal["sum", "max"]
"""How the values of several processes become one."""

QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds, of what we do ourselves."""
SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
"""Seconds, of what a model takes its time for."""
GAPS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)
"""Seconds between two pieces of a stream."""


class Metric(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    over: Over = "sum"


_RUN: Final = ("door", "provider", "model")
_MODEL: Final = ("provider", "model")

_ALL: Final = (
    # ── requests ────────────────────────────────────────────────────────────────────────────────────
    Metric(
        "isthmus_http_requests_total",
        "counter",
        "Requests for work, and whatever was kept out for its key, by the HTTP status of the answer; 0: none was sent.",
        ("door", "status"),
    ),
    Metric(
        "isthmus_requests_total",
        "counter",
        "Responses, completions, messages and embeddings that ended, by how they ended.",
        (*_RUN, "status"),
    ),
    Metric("isthmus_request_duration_seconds", "histogram", "From the request to its last byte.", _RUN, SLOW),
    Metric("isthmus_time_to_first_token_seconds", "histogram", "Until the model says something.", _MODEL, SLOW),
    Metric("isthmus_token_gap_seconds", "histogram", "Mean time between two pieces, one value a stream.", _MODEL, GAPS),
    Metric("isthmus_token_gap_longest_seconds", "histogram", "Longest such time, one value a stream.", _MODEL, GAPS),
    Metric(
        "isthmus_overhead_seconds", "histogram", "Our own time: all of it, without the upstream's.", ("door",), QUICK
    ),
    Metric(
        "isthmus_tokens_total", "counter", "Tokens; cached ones are input, too, reasoning is output.", (*_MODEL, "kind")
    ),
    Metric("isthmus_cost_dollars_total", "counter", "Cost by the public prices, in US dollars.", _MODEL),
    Metric("isthmus_plan_decisions_total", "counter", "Decisions of plans, by what was decided.", ("action",)),
    Metric(
        "isthmus_contract_checks_total", "counter", "Answers held against a format, by what was found.", ("result",)
    ),
    Metric("isthmus_tool_runs_total", "counter", "Tools that were run here, by what became of it.", ("kind", "result")),
    Metric("isthmus_tool_seconds", "histogram", "How long they took.", ("kind",), SLOW),
    # ── limits ──────────────────────────────────────────────────────────────────────────────────────
    Metric("isthmus_limit_refusals_total", "counter", "Requests that a limit or a budget refused.", ("kind",)),
    Metric("isthmus_limits_redis_failures_total", "counter", "Times that limits could not be counted in Redis."),
    Metric("isthmus_usage_lost_total", "counter", "Runs whose use could not be noted: the store took too little."),
    # ── upstreams ───────────────────────────────────────────────────────────────────────────────────
    Metric("isthmus_attempts_total", "counter", "Times that an upstream was asked.", _MODEL),
    Metric("isthmus_attempt_failures_total", "counter", "Attempts that failed, by the code.", ("provider", "code")),
    Metric(
        "isthmus_retries_total",
        "counter",
        "Times that the same provider was asked again, after a wait (`again`) or at another place (`elsewhere`).",
        ("provider", "kind"),
    ),
    Metric(
        "isthmus_fallbacks_total",
        "counter",
        "Times that another model was asked instead, by the provider that had failed.",
        ("provider",),
    ),
    Metric("isthmus_upstream_connections", "gauge", "Requests on their way to a provider.", ("provider",)),
    Metric("isthmus_upstream_queue_length", "gauge", "Requests that wait for a connection to it.", ("provider",)),
    Metric(
        "isthmus_upstream_resting",
        "gauge",
        "Places of it that are left alone, for they failed too often.",
        ("provider",),
    ),
    # ── what is under way ───────────────────────────────────────────────────────────────────────────
    Metric("isthmus_requests_in_flight", "gauge", "Requests that are served now."),
    Metric("isthmus_open_streams", "gauge", "Answers that are being streamed now."),
    Metric("isthmus_websockets", "gauge", "Open WebSockets."),
    Metric(
        "isthmus_request_bytes", "gauge", "Memory that requests are taken to need, as `limits.max_serving` counts it."
    ),
    Metric(
        "isthmus_background_runs", "gauge", "Background responses of this gateway, by whether they run.", ("state",)
    ),
    Metric("isthmus_queue_length", "gauge", "What waits, by where: checks, store, aside.", ("queue",)),
    Metric("isthmus_worker_processes", "gauge", "Processes for checks, by whether they work.", ("state",)),
    Metric("isthmus_workers_started_total", "counter", "Processes for checks that were started."),
    Metric("isthmus_webhook_backlog", "gauge", "Notices to a receiver, by what they wait for.", ("endpoint", "state")),
    # ── the process ─────────────────────────────────────────────────────────────────────────────────
    Metric(
        "isthmus_loop_lag_seconds",
        "histogram",
        "How late the loop's turns are, measured ten times a second.",
        (),
        QUICK,
    ),
    Metric("isthmus_loop_lag_worst_seconds", "gauge", "Its longest delay within the last minute.", (), (), "max"),
    Metric("isthmus_log_lines_lost_total", "counter", "Lines of the log that could not be written."),
    Metric("isthmus_traces_dropped_total", "counter", "Traces that found the queue full."),
    Metric("isthmus_otel_spans_total", "counter", "Spans for OpenTelemetry, by what became of them.", ("result",)),
    Metric("isthmus_trace_queue_length", "gauge", "Traces that wait to be written."),
    Metric("isthmus_store_seconds", "histogram", "What the store takes, its queue included.", ("operation",), QUICK),
    Metric("isthmus_store_up", "gauge", "1 if the store can be used, as far as it knows.", (), (), "max"),
    Metric(
        "isthmus_workers",
        "gauge",
        "Workers of this gateway, by whether they answer; of a silent one counts what it said last.",
        ("state",),
    ),
    Metric("isthmus_draining", "gauge", "1 while it shuts down.", (), (), "max"),
    Metric("isthmus_info", "gauge", "1, with the version that runs.", ("version",), (), "max"),
    Metric("process_resident_memory_bytes", "gauge", "Memory that the process takes."),
    Metric("process_virtual_memory_bytes", "gauge", "Addresses that it has."),
    Metric("process_cpu_seconds_total", "counter", "Processor time that it took."),
    Metric("process_open_fds", "gauge", "Files that it has open."),
    Metric("process_max_fds", "gauge", "Files that it may have open.", (), (), "max"),
    Metric("process_start_time_seconds", "gauge", "When it was started, in seconds since 1970.", (), (), "max"),
)

CATALOG: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _ALL}
