"""A request once more: planned for another model beside the plan that was made then. Nothing is sent.

The request is the recorded one where all was captured, else it is made again from the stored response; what is kept of
neither cannot be planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.bridge.parse import parse_request
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.observe.differences import compare_plans
from isthmus.observe.recall import request_again
from isthmus.observe.sent import answered_body, content_of
from isthmus.observe.traces.told import traced_decisions
from isthmus.ports.traced import Trace
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look


async def again_view(look: Look) -> dict[str, Any]:
    id = look.scope["path_params"]["id"]
    trace = await look.traces.find(look.visitor.owner, id) if look.traces is not None else None
    if trace is None:
        raise RequestRefused(f"nothing is known of `{id[:80]}`", code="not_found")
    models = [
        name for name, offered in (await look.gateway.offer.models(look.visitor.caller)).items() if not offered.embeds
    ]
    model = look.asked.get("model", "")
    values: dict[str, Any] = {"trace": trace, "summary": trace.summary, "model": model, "models": models}
    values |= {"differences": None, "refused": None, "missing": "", "plan": None, "exact": True}
    body = recorded_body(trace)
    if body is None:
        body, values["exact"] = await stored_body(look, trace), False
    if body is None:
        values["missing"] = (
            "neither its content (captured at level `full`) nor its response is kept here: switch full capture on, and "
            "ask again"
        )
    elif model:
        values |= await _plan(look, trace, {**body, "model": model})
    return values


def recorded_body(trace: Trace) -> JsonObject | None:
    found: JsonObject | None = content_of(trace.request)
    return found


async def stored_body(look: Look, trace: Trace) -> JsonObject | None:
    """Made again from what the store has."""
    summary = trace.summary
    if not summary.response.startswith("resp_"):
        return None
    owner = Caller(summary.owner)
    try:
        kept = await look.gateway.retrieve(owner, summary.response)
    except IsthmusError:
        return None
    response = msgspec.json.decode(kept.response)
    items = [msgspec.json.decode(item) for item in kept.input]
    named = [piece.path.partition("[")[0] for piece in trace.request.pieces]
    return request_again(response, items, summary.asked_model or summary.model, named=named or None)


async def _plan(look: Look, trace: Trace, body: JsonObject) -> dict[str, Any]:
    try:
        request = await look.gateway.read(msgspec.json.encode(body), parse_request)
        plan = await look.gateway.plan_only(Caller(trace.summary.owner), request)
    except IsthmusError as error:
        return {"refused": error}
    after = traced_decisions(plan.decisions)
    sent = answered_body(trace)
    content = None if sent is None else content_of(sent)
    bodies = None if content is None else (content, plan.body)
    return {"plan": plan, "differences": compare_plans(trace.decisions, after, bodies=bodies)}
