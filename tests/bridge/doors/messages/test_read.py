"""A Messages request as a whole: every field has its place, and what is said of it names it as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.capabilities import ParameterRule
from isthmus.bridge.doors.chat.read import reword
from isthmus.bridge.doors.messages.read import MessagesRequest, receive_messages_request
from isthmus.bridge.limits import RequestLimits
from isthmus.bridge.plan import plan_request
from isthmus.bridge.types.clients import MESSAGES
from isthmus.bridge.types.plan import Host, Plan, Target
from isthmus.errors import RequestRefused
from isthmus.testing.fold import plan_for

Json = dict[str, Any]
HI = [{"role": "user", "content": "hi"}]
LOOK = {"name": "look", "input_schema": {"type": "object"}}
PLACEHOLDER = {"name": "DeferredToolPlaceholder", "defer_loading": True, "input_schema": {"type": "object"}}


def read(headers: dict[str, str] | None = None, **fields: Any) -> MessagesRequest:
    return receive_messages_request({"model": "m", "max_tokens": 9, "messages": HI, **fields}, headers=headers)


def plan(asked: MessagesRequest, *, strict: bool = False, **rules: ParameterRule) -> Plan:
    """At a provider that takes a limit, and what `rules` say."""
    parameters = {"max_output_tokens": ParameterRule(), **rules}
    target = Target("test", "m", plan_for(parameters=parameters).target.capabilities)
    host = Host(frozenset({"store"}), strict)
    return plan_request(asked.request, target, host, noted=asked.decisions, client=MESSAGES, envelope_key=bytes(32))


def told(asked: MessagesRequest, **how: Any) -> dict[str, str]:
    return {asked.path(one.path): one.action for one in plan(asked, **how).diagnostics}


def test_the_plain_request() -> None:
    body: Any = read(system="Be kind.", temperature=0.5, stream=True).request.body
    assert body["instructions"] == "Be kind."
    assert body["input"] == [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]
    assert (body["max_output_tokens"], body["temperature"], body["stream"]) == (9, 0.5, True)
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]


def test_bytes_are_read_and_weighed() -> None:
    raw = json.dumps({"model": "m", "max_tokens": 9, "messages": HI}).encode()
    assert receive_messages_request(raw).request.size == len(raw)


def test_the_long_window_is_cut_off_the_name_but_not_forgotten() -> None:
    asked = read(model="claude-opus-5[1m]")
    assert (asked.request.body.get("model"), asked.model) == ("claude-opus-5", "claude-opus-5[1m]")


@pytest.mark.parametrize(
    ("display", "shown"), [("omitted", False), ("updates", True), ("summarized", True), (None, True)]
)
def test_whether_thinking_is_shown(display: str | None, shown: bool) -> None:
    assert read(thinking={"type": "adaptive", "display": display}).shows_thinking is shown
    assert read().shows_thinking is True


def test_a_response_may_be_stored_as_through_the_other_doors() -> None:
    assert read(store=True).request.body.get("store") is True


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("input", "messages"),
        ("max_output_tokens", "max_tokens"),
        ("reasoning.summary", "thinking.display"),
        ("input[0]", "system"),
        ("input[0].content[1].prompt_cache_breakpoint", "system[1].cache_control"),
        ("input[1].content[1]", "messages[0].content[1]"),
        ("input[2].encrypted_content", "messages[1].content[0].signature"),
        ("input[3].arguments", "messages[1].content[1].input"),
        ("input[4].output[0].detail", "messages[2].content[1].content[0].detail"),
        ("input[5].content[0]", "messages[2].content[0]"),
        ("input[99]", "messages"),
        ("tools[0].parameters", "tools[1].input_schema"),
        ("tools[1]", "tools[0]"),
        ("history[0]", "history[0]"),
        ("upstream.top_p", "upstream.top_p"),
    ],
)
def test_every_path_leads_back(given: str, path: str) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    asked = read(
        system=[
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
        ],
        tools=[PLACEHOLDER, LOOK],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a"}, image]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "tool_use", "id": "t", "name": "look", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "so?"},
                    {"type": "tool_result", "tool_use_id": "t", "content": [image]},
                ],
            },
        ],
    )
    assert asked.path(given) == path


def test_marks_are_told_once_where_the_provider_takes_none() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    asked = read(system=[marked], messages=[{"role": "user", "content": [marked, marked]}])
    assert told(asked) == {"system[0].cache_control": "ignored"}


def test_an_hour_of_caching_is_asked_for_as_a_day() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = read(system=[marked])
    assert asked.request.body.get("prompt_cache_retention") == "24h"
    assert told(asked)["cache_control.ttl"] == "ignored"


def test_a_field_of_another_api_is_ignored_aloud_and_replaces_nothing() -> None:
    asked = read(input="other", instructions="other", system="mine")
    assert asked.request.body.get("instructions") == "mine"
    assert told(asked) == {'["input"]': "ignored", '["instructions"]': "ignored"}


def test_an_unknown_field_is_left_to_the_planner() -> None:
    assert told(read(a_beta="x")) == {"a_beta": "ignored"}
    assert told(read(top_k=3)) == {"top_k": "ignored"}
    assert plan(read(top_k=3), top_k=ParameterRule()).body["top_k"] == 3


def test_words_put_into_the_models_mouth_are_told_of() -> None:
    asked = read(messages=[*HI, {"role": "assistant", "content": "{"}])
    assert told(asked)["messages[1]"] == "degraded"


def test_a_hosted_tool_that_nobody_runs_is_refused_by_name() -> None:
    asked = read(tools=[PLACEHOLDER, {"type": "web_search_20250305", "name": "web_search"}])
    with pytest.raises(RequestRefused, match="web_search") as refused:
        plan(asked)
    assert reword(refused.value, asked.path).param == "tools[1]"
    assert "`tools[1]`" in reword(refused.value, asked.path).message


def test_strict_mode_refuses_what_the_door_would_change() -> None:
    asked = read(messages=[{"role": "user", "content": [{"type": "tool_reference", "tool_name": "x"}]}])
    with pytest.raises(RequestRefused, match="strict mode") as refused:
        plan(asked, strict=True)
    assert refused.value.metadata["diagnostics"][0]["metadata"]["otherwise"] == "degraded"


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"messages": []}, "messages", "at least one"),
        ({"max_tokens": 0}, "max_tokens", "at least 1"),
        ({"max_tokens": None}, "max_tokens", "int"),
        ({"messages": "hi"}, "messages", "array"),
        ({"tools": [{"name": 3}]}, "tools[0].name", "string"),
        ({"thinking": {"budget_tokens": 3}}, "thinking.type", "missing"),
        ({"stop_sequences": "x"}, "stop_sequences", "array"),
        ({"temperature": "hot"}, "temperature", "float"),
    ],
)
def test_a_broken_request_is_refused_by_name(fields: Json, param: str, words: str) -> None:
    with pytest.raises(RequestRefused, match=words) as refused:
        read(**fields)
    assert refused.value.param == param


@pytest.mark.parametrize("missing", ["model", "max_tokens", "messages"])
def test_what_must_be_there(missing: str) -> None:
    body: Json = {"model": "m", "max_tokens": 9, "messages": HI}
    del body[missing]
    with pytest.raises(RequestRefused, match="missing") as refused:
        receive_messages_request(body)
    assert refused.value.param == missing


def test_a_count_needs_no_limit() -> None:
    asked = receive_messages_request({"model": "m", "messages": HI}, counting=True)
    assert "max_output_tokens" not in asked.request.body


def test_limits_are_those_of_every_door() -> None:
    with pytest.raises(RequestRefused, match="max_items") as refused:
        receive_messages_request({"model": "m", "max_tokens": 1, "messages": HI * 3}, RequestLimits(max_items=2))
    assert refused.value.param == "messages"
    with pytest.raises(RequestRefused, match="JSON"):
        receive_messages_request(b"{")
    with pytest.raises(RequestRefused, match="object"):
        receive_messages_request(b"[]")
