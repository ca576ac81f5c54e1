"""Traces as tests make them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from isthmus.ports.packed import PackedTrace, Pattern, pack_all
from isthmus.ports.traced import Piece, Timings, Trace, TracedBody, TracedCall, TraceSummary
from isthmus.ports.traces import TraceStore


def keep_in(store: TraceStore, traces: Iterable[Trace]) -> None:
    store.keep(pack_all(traces))


_OWN = re.compile(rb'("(?:req_|resp_|h)[^"]*"|(?<="at":)[\d.]+|(?<="ended_at":)[\d.]+|(?<="batches":)\d+)')


def patterned(trace: PackedTrace) -> PackedTrace:
    """The same with its ids, its times and what was said apart from what it has in common with others."""
    (head, own), (detail, said) = ((parts[::2], parts[1::2]) for parts in map(_OWN.split, (trace.head, trace.detail)))
    values = [b"".join(value + b"\n" for value in values) for values in (own, said)]
    return PackedTrace(trace.filed, *values, Pattern(tuple(head), tuple(detail)))


def traced(id: str, at: float = 1_000.0, **fields: Any) -> Trace:
    """One request that was answered at `at`."""
    facts: dict[str, Any] = {
        "owner": "local",
        "door": "responses",
        "provider": "main",
        "model": "some-model",
        "outcome": "completed",
        "status": 200,
        "response": f"resp_{id}",
        "input_tokens": 10,
        "output_tokens": 5,
        "total": 0.5,
        "first_token": 0.1,
        "thread": f"resp_{id}",
    }
    summary = TraceSummary(id=f"req_{id}", at=at - 0.5, ended_at=at, **{**facts, **fields})
    body = TracedBody(20, (Piece("model", 10, "aa"), Piece("messages[0]", 10, f"h{id}", "user")))
    call = TracedCall(summary.provider, summary.model, 1, "first", 0.01, body, 0.05)
    return Trace(summary=summary, timings=Timings(total=0.5), request=body, calls=(call,), batches=3, events=9)
