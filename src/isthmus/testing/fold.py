"""Fold deltas into a response, the way the gateway does: for tests of anything that reads responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus.bridge.at_once import end_here, feed_here
from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities
from isthmus.bridge.deltas import Delta
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.turn import Done, Send, Turn
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.protocol.json import JsonObject

RESPONSE_ID = "resp_0000000000000000"
CREATED_AT = 1_700_000_000
COMPLETED_AT = 1_700_000_005


def plan_for(body: JsonObject | None = None, *, host: Host | None = None, **facts: Any) -> Plan:
    """A plan for a request at a provider of which only `facts` are known."""
    capabilities = ProviderCapabilities(
        provider="test",
        model="test-model",
        **{"parameters": {name: ParameterRule() for name in ("temperature", "top_p", "stream")}, **facts},
    )
    request = parse_request({"model": "test-model", "input": "hi", **(body or {})})
    return plan_request(request, Target("test", "test-model", capabilities), host or Host())


def fold(*deltas: Delta, plan: Plan | None = None) -> JsonObject:
    """The finished Response object that these deltas make."""
    return stream(deltas, plan=plan)[1]


def stream(
    deltas: Sequence[Delta] | Sequence[Sequence[Delta]], *, plan: Plan | None = None
) -> tuple[list[JsonObject], JsonObject]:
    """All events and the finished response; `deltas` may come in batches, as from a network."""
    turn = Turn(plan or plan_for(), response_id=RESPONSE_ID, now=CREATED_AT)
    events = turn.accepted()
    for batch in deltas:
        events += feed_here(turn, batch if isinstance(batch, Sequence) else [batch])
    done = end_here(turn, COMPLETED_AT)
    if isinstance(done, Send):
        raise AssertionError("the turn asks the model again; conduct it with `Turn` itself")
    assert isinstance(done, Done)
    told: list[Any] = events + done.events
    response: Any = done.response
    return told, response
