"""The body of a Messages request: fields that depend on each other, tools, choices, formats, and asking again."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import ask_again, go_on, plan_request
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.providers import load_provider
from strict_anthropic import refused_by_anthropic

Json = dict[str, Any]
LOOK: Json = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
CALL: Json = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "ok"}
USER: Json = {"role": "user", "content": "go"}


def planned(model: str = "claude-opus-5-5", *, strict: bool = False, **body: Any) -> Plan:
    facts = load_provider("anthropic").capabilities(model)
    request = parse_request({"model": "m", "input": "go", **body})
    plan = plan_request(request, Target("anthropic", model, facts), Host(strict=strict))
    assert refused_by_anthropic(plan.body) is None
    return plan


def action(plan: Plan, path: str) -> list[str]:
    return [one.action for one in plan.decisions if one.path == path]


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "graded"),
    [
        ("claude-opus-5-5", "max", {"type": "adaptive"}, "max"),
        ("claude-opus-5-5", "minimal", {"type": "adaptive"}, "low"),
        ("claude-opus-5-5", "none", {"type": "adaptive"}, "low"),
        ("claude-opus-5-5", None, None, None),
        ("claude-opus-4-8", "none", None, None),
        ("claude-opus-4-6", "xhigh", {"type": "adaptive"}, "max"),
        ("claude-opus-4-6", "none", {"type": "disabled"}, None),
        ("claude-sonnet-5", "none", {"type": "disabled"}, None),
        ("claude-haiku-4-5", "minimal", {"type": "enabled", "budget_tokens": 1024}, None),
        ("claude-haiku-4-5", "medium", {"type": "enabled", "budget_tokens": 4096}, None),
        ("claude-haiku-4-5", "high", {"type": "enabled", "budget_tokens": 16384}, None),
        ("claude-haiku-4-5", "max", {"type": "enabled", "budget_tokens": 31999}, None),
        ("claude-haiku-4-5", None, None, None),
    ],
)
def test_an_effort_is_a_grade_or_a_budget(model: str, effort: str | None, thinking: Any, graded: str | None) -> None:
    body = planned(model, **({"reasoning": {"effort": effort}} if effort else {})).body
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == graded


@pytest.mark.parametrize(
    ("most", "thinking", "told"),
    [
        (40_000, {"type": "enabled", "budget_tokens": 16_384}, []),
        (10_000, {"type": "enabled", "budget_tokens": 5_000}, ["degraded"]),
        (1_500, {"type": "enabled", "budget_tokens": 1_024}, ["degraded"]),
        (1_000, {"type": "disabled"}, ["degraded"]),
    ],
)
def test_a_budget_leaves_room_for_the_answer(most: int, thinking: Json, told: list[str]) -> None:
    plan = planned("claude-haiku-4-5", reasoning={"effort": "high"}, max_output_tokens=most)
    assert plan.body["thinking"] == thinking
    assert action(plan, "upstream.thinking") == told


def test_a_summary_is_a_display_and_nothing_is_shown_of_nothing() -> None:
    shown = planned(reasoning={"effort": "high", "summary": "auto"}).body["thinking"]
    assert shown == {"type": "adaptive", "display": "summarized"}
    assert planned("claude-opus-4-6", reasoning={"effort": "none", "summary": "auto"}).body["thinking"] == {
        "type": "disabled"
    }
    assert "thinking" not in planned(reasoning={"summary": "auto"}).body


def test_every_request_has_a_limit() -> None:
    assert planned().body["max_tokens"] == 128_000
    assert planned("claude-novel-9").body["max_tokens"] == 32_000
    assert planned(max_output_tokens=7).body["max_tokens"] == 7
    over = planned("claude-haiku-4-5", max_output_tokens=10**6)
    assert (over.body["max_tokens"], action(over, "max_output_tokens")) == (64_000, ["degraded"])


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ({"type": "function", "name": "look"}, {"type": "tool", "name": "look"}),
        (None, None),
    ],
)
def test_choices_are_spelled_the_vendors_way(choice: Any, sent: Json | None) -> None:
    plan = planned("claude-opus-4-6", tools=[LOOK], **({"tool_choice": choice} if choice else {}))
    assert plan.body.get("tool_choice") == sent
    tool = {name: value for name, value in plan.body["tools"][0].items() if name != "cache_control"}
    assert tool == {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}


def test_a_model_that_takes_no_forced_call_is_asked_in_words() -> None:
    plan = planned(tools=[LOOK], tool_choice="required")
    assert plan.body["tool_choice"] == {"type": "auto"}
    assert "call at least one" in plan.body["system"][-1]["text"]
    assert action(plan, "tool_choice") == ["degraded"]


def test_calls_without_their_tools_get_stand_ins_that_may_not_be_called() -> None:
    for body in ({}, {"tools": [LOOK], "tool_choice": "none"}):
        plan = planned(input=[USER, CALL, OUTPUT], **body)
        assert [tool["name"] for tool in plan.body["tools"]] == ["look"]
        assert plan.body["tool_choice"] == {"type": "none"}


def test_parallel_calls_are_forbidden_inside_the_choice() -> None:
    banned = {"type": "auto", "disable_parallel_tool_use": True}
    assert planned(tools=[LOOK], parallel_tool_calls=False).body["tool_choice"] == banned
    assert "tool_choice" not in planned(tools=[LOOK], parallel_tool_calls=True).body
    assert "tool_choice" not in planned(parallel_tool_calls=False).body


def test_a_format_is_closed_and_its_refused_keywords_move() -> None:
    inner = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}}
    schema = {"type": "object", "properties": {"list": inner}}
    form = {"type": "json_schema", "name": "s", "schema": schema, "strict": True}
    sent = planned(text={"format": form}, reasoning={"effort": "low"}).body["output_config"]
    assert sent["effort"] == "low"
    made = sent["format"]["schema"]
    assert made["additionalProperties"] is False
    assert made["properties"]["list"]["items"]["additionalProperties"] is False
    assert "maxLength: 3" in made["properties"]["list"]["items"]["properties"]["a"]["description"]


def test_an_open_schema_and_plain_json_are_asked_for_in_words() -> None:
    open_schema = {"type": "json_schema", "name": "s", "schema": {"type": "object"}, "strict": False}
    for form in (open_schema, {"type": "json_object"}):
        plan = planned(text={"format": form})
        assert "output_config" not in plan.body
        assert "JSON" in plan.body["system"][-1]["text"]
        assert action(plan, "text.format") == ["degraded"]


def test_stops_are_a_list_without_blank_ones() -> None:
    assert planned(stop="END").body["stop_sequences"] == ["END"]
    plan = planned(stop=["END", " \n"])
    assert plan.body["stop_sequences"] == ["END"]
    assert "degraded" in action(plan, "stop")
    assert "stop_sequences" not in planned(stop=[" "]).body


def test_sampling_is_clamped_dropped_or_told() -> None:
    plan = planned("claude-opus-4-6", temperature=1.5, top_p=0.5)
    assert (plan.body["temperature"], "top_p" in plan.body) == (1, False)
    assert action(plan, "temperature") == ["degraded"]
    assert action(plan, "upstream.top_p") == ["ignored"]
    assert action(planned(temperature=0.5), "temperature") == ["ignored"]
    assert action(planned("claude-opus-4-6", temperature=0.5, reasoning={"effort": "low"}), "temperature") == [
        "ignored"
    ]


def test_the_cache_lives_an_hour_where_a_day_is_asked_for() -> None:
    plan = planned(instructions="Be kind.", prompt_cache_retention="24h")
    assert plan.body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert action(plan, "prompt_cache_retention") == ["degraded"]
    assert planned(prompt_cache_retention="in_memory").body["messages"][0]["content"][0]["cache_control"] == {
        "type": "ephemeral"
    }


def test_the_clients_breakpoints_are_marked() -> None:
    part = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}
    content = [part, {"type": "input_text", "text": "b"}]
    plan = planned(instructions="Be kind.", input=[{"role": "user", "content": content}])
    assert ["cache_control" in block for block in plan.body["messages"][0]["content"]] == [True, False]
    assert "cache_control" not in plan.body["system"][0]


def test_strict_mode_refuses_a_loss() -> None:
    with pytest.raises(RequestRefused, match="temperature"):
        planned(temperature=0.5, strict=True)
    planned(strict=True, max_output_tokens=9, tools=[LOOK], reasoning={"effort": "high"})


def test_web_search_is_the_vendors_own() -> None:
    tool = {"type": "web_search", "filters": {"allowed_domains": ["x.org"]}, "user_location": {"type": "approximate"}}
    sent = planned(tools=[tool]).body["tools"][0]
    assert (sent["type"], sent["name"], sent["allowed_domains"]) == ("web_search_20250305", "web_search", ["x.org"])


def test_asking_again_and_going_on_put_more_behind_the_same_beginning() -> None:
    plan = planned()
    again = ask_again(plan, [("{", "Give JSON."), ("", "Once more.")])["messages"]
    assert again[0] == plan.body["messages"][0]
    assert [message["role"] for message in again] == ["user", "assistant", "user"]
    assert [block["text"] for block in again[2]["content"]] == ["Give JSON.", "Once more."]
    paused = go_on(plan, [{"type": "text", "text": "Well"}])["messages"]
    assert paused == [*plan.body["messages"], {"role": "assistant", "content": [{"type": "text", "text": "Well"}]}]
    assert len(plan.body["messages"]) == 1


def test_a_tool_with_a_choice_at_its_root_spoils_no_request() -> None:
    union = {"type": "object", "oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    plan = planned(tools=[{**LOOK, "parameters": union}])
    assert set(plan.body["tools"][0]["input_schema"]["properties"]) == {"a", "b"}
    assert action(plan, "tools[0]") == ["degraded"]
