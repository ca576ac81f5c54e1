"""Traces for tests of those who read them: a request planned for a real provider, as a gateway would have kept it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Host, Target
from isthmus.gateway.attempts import HONOURED
from isthmus.ports.facts import Mark
from isthmus.ports.traced import Timings, Trace, TracedBody, TracedCall, TracedDecision, TracedItem, TraceSummary
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for
from isthmus.store.traces.sqlite import SqliteTraces
from pieces import pieces_of
from traced import keep_in

NOW = time.time() - 1000.0


def traced(index: int, body: dict[str, Any], *, provider: str = "deepseek", full: bool = True, **facts: Any) -> Trace:
    """The `index`th request: `req_…`, `resp_…`, with figures that tell it apart."""
    known = load_provider(provider)
    model = known.default_model or "model"
    plan = plan_request(parse_request(body), Target(provider, model, capabilities_for(known, model)), Host(HONOURED))
    told = {
        "id": f"req_{index:024x}",
        "response": f"resp_{index:032x}",
        "at": NOW + index,
        "ended_at": NOW + index + 0.5,
        "owner": "local",
        "door": "responses",
        "method": "POST",
        "path": "/v1/responses",
        "asked_model": str(body.get("model")),
        "provider": provider,
        "model": model,
        "outcome": "completed",
        "status": 200,
        "input_tokens": 1000 * index,
        "output_tokens": 10,
        "cached_tokens": 1000 * (index - 1),
        "total": 1.5,
        "degraded": sum(decision.action == "degraded" for decision in plan.decisions),
        "ignored": sum(decision.action == "ignored" for decision in plan.decisions),
        "capture": "full" if full else "metadata",
        "thread": "thread_1",
    }
    return Trace(
        summary=TraceSummary(**{**told, **facts}),
        timings=Timings(parse=0.001, plan=0.002, total=1.5),
        request=kept_body(body, full=full),
        decisions=tuple(
            TracedDecision(one.path, one.action, one.reason, one.code, tuple(one.sends)) for one in plan.decisions
        ),
        calls=(TracedCall(provider, model, 1, "first", 0.003, kept_body(plan.body, full=full), 0.2),),
        output=(TracedItem("message", "completed", 120),),
        usage={"input_tokens": 1000 * index},
        events=7,
        batches=3,
        marks=(Mark(0.5, 1, "output_text.delta"), Mark(1.4, 3, "completed")),
    )


def kept_body(body: dict[str, Any], *, full: bool) -> TracedBody:
    data = msgspec.json.encode(body)
    made = TracedBody(bytes=len(data), pieces=pieces_of(body))
    return msgspec.structs.replace(made, content=msgspec.Raw(data)) if full else made


def keep(path: Path, *traces: Trace) -> str:
    """Write them beside a store; gives the store's address."""
    store = SqliteTraces(path.with_name(f"{path.stem}.traces{path.suffix}"))
    keep_in(store, traces)
    store.close()
    return f"sqlite:{path}"
