"""The operator's hooks at the gateway: whose requests they see, and those that are asked once and are no response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.conduct.review import with_decisions
from isthmus.gateway.caller import Caller
from isthmus.hooks import Context, Kind, Sending
from isthmus.hooks.hooked import Hooked, Hooks
from isthmus.protocol.json import JsonObject

_P = TypeVar("_P", bound="Any")


async def before_once(
    hooks: Hooks, caller: Caller, kind: Kind, id: str, body: JsonObject, read: Callable[[JsonObject], object]
) -> tuple[Hooked, JsonObject | None, tuple[CompatibilityDecision, ...]]:
    """Who asks the hooks, what they made of the body (`None`: nothing), and what was decided about it."""
    hooked = hooks.look_after(context_of(caller, id, body, kind=kind))
    return (hooked, *await hooked.before_plan(body, read))


async def before_sending_once(hooked: Hooked, plan: _P) -> _P:
    """The plan with the body that is sent."""
    target = plan.target
    body, decisions = await hooked.before_send(plan.body, Sending(target.provider, target.model, hooked.context.kind))
    return plan if body is None and not decisions else with_decisions(plan, decisions, body)


def context_of(
    caller: Caller, id: str, body: Mapping[str, Any], *, streamed: bool = False, kind: Kind = "response"
) -> Context:
    return Context(
        id,
        kind,
        owner=caller.owner,
        key=caller.key,
        team=caller.team,
        request=caller.request,
        model=body.get("model") or "",
        metadata=body.get("metadata") or {},
        streamed=streamed,
    )
