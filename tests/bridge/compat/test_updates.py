"""`configuration_update` items: the last of each setting counts, for this answer, in any dialect."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.compat.planner import apply_updates
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.plan import Plan, Target
from isthmus.providers import load_provider
from isthmus.providers.dialects import capabilities_for

Json = dict[str, Any]
FORMAT = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": False}
HI: Json = {"type": "message", "role": "user", "content": "hi"}


def update(effort: str | None = None, form: Json | None = None) -> Json:
    reasoning = {"effort": effort} if effort else None
    return {"type": "configuration_update", "reasoning": reasoning, "text": {"format": form} if form else None}


def plan(dialect: Any, *items: Json, history: tuple[Json, ...] = (), **body: Any) -> Plan:
    target = Target("openai", "gpt-5", capabilities_for(load_provider("openai"), "gpt-5", dialect))
    return plan_request(parse_request({"input": [*items], **body}), target, history=history)


def test_a_request_without_updates_is_the_same() -> None:
    request = parse_request({"input": "hi"})
    assert apply_updates(request, request.items) is request


def test_the_last_effort_is_sent_and_the_request_s_own_is_shown() -> None:
    found = plan("chat", HI, update("low"), HI, update("high"), HI, reasoning={"effort": "medium"})
    assert found.body["reasoning_effort"] == "high"
    assert found.echo["reasoning"]["effort"] == "medium"
    assert [one["role"] for one in found.body["messages"]] == ["user"] * 3


def test_each_setting_holds_until_it_is_replaced() -> None:
    found = plan("responses", HI, update("low", FORMAT), update("high"), HI)
    assert found.body["reasoning"]["effort"] == "high"
    assert found.body["text"]["format"]["type"] == "json_schema"
    assert [item["type"] for item in found.body["input"]] == ["message", "message"]
    assert (found.echo["text"], found.echo["reasoning"]) == ({"format": {"type": "text"}}, None)


def test_an_update_of_an_earlier_stored_turn_is_still_in_force() -> None:
    assert plan("chat", HI, history=(HI, update("low"))).body["reasoning_effort"] == "low"


def test_every_update_has_a_decision() -> None:
    found = plan("chat", HI, update("low"))
    assert [(d.path, d.action) for d in found.decisions if d.path == "input[1]"] == [("input[1]", "supported")]
