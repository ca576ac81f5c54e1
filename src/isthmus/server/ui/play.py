"""The playground: write a request, see what would become of it on one or two models, send it, watch the events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Send

from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import Plan
from isthmus.errors import IsthmusError
from isthmus.protocol.json import JsonObject
from isthmus.server.bodies import body_of
from isthmus.server.deeds import note_deed
from isthmus.server.errors import error_body
from isthmus.server.exchange import exchange_of
from isthmus.server.http import send_json
from isthmus.server.scopes import not_opened, opens
from isthmus.server.ui.again import recorded_body, stored_body
from isthmus.server.ui.render import GUARDED

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look


async def playground_view(look: Look) -> dict[str, Any]:
    listed = await look.gateway.offer.models(look.visitor.caller)
    default = look.gateway.directory.default or ""
    first = look.asked.get("model") or default
    body: JsonObject = {
        "input": look.asked.get("input", "Say hello in three languages."),
        "reasoning": {"effort": "low"},
    }
    if "from" in look.asked and look.traces is not None:
        trace = await look.traces.find(look.visitor.owner, look.asked["from"])
        found = None if trace is None else recorded_body(trace) or await stored_body(look, trace)
        if found is not None:
            body = {name: value for name, value in found.items() if name not in ("model", "stream", "background")}
    return {
        "models": [id for id, offered in listed.items() if not offered.embeds],
        "first": first,
        "second": look.asked.get("beside", ""),
        "body": body,
    }


async def plan_json(look: Look, send: Send) -> None:
    """What would be sent and why, or why it is refused. Nothing is."""
    exchange = exchange_of(look.scope)
    exchange.caller = look.visitor.caller
    try:
        request = await look.gateway.read(body_of(look.scope), parse_request)
        plan = await look.gateway.plan_only(look.visitor.caller, request)
    except IsthmusError as error:
        exchange.failure = error
        await send_json(send, 200, {"refused": error_body(error)["error"]}, GUARDED)
        return
    await send_json(send, 200, shown_plan(plan), GUARDED)


def shown_plan(plan: Plan) -> JsonObject:
    return {
        "provider": plan.target.provider,
        "model": plan.target.model,
        "dialect": plan.target.capabilities.dialect,
        "decisions": [
            {"path": one.path, "action": one.action, "reason": one.reason, "code": one.code} for one in plan.decisions
        ],
        "body": plan.body,
    }


async def send_request(look: Look, receive: Receive, send: Send) -> None:
    """The same as `/v1/responses`, for whoever may look."""
    visitor = look.visitor
    if not opens(visitor.caller, "responses"):
        raise not_opened(visitor.caller, "responses")
    if visitor.operates and visitor.session:
        await note_deed(look.scope, look.gateway, look.options, "page.send", actor=visitor.caller.key)
    exchange_of(look.scope).caller = visitor.caller
    await look.pages.create(look.scope, receive, send)
