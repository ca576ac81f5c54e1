"""What holds for every request and every provider."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.bridge.capabilities import (
    EFFORTS,
    ParameterRule,
    ProviderCapabilities,
    ReasoningSupport,
    ResponseFormatSupport,
    TokenLimits,
    ToolChoiceSupport,
)
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.diagnostics import CODES, apply_allow_list, apply_strict
from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import LIBRARY, Host
from isthmus.gateway.attempts import HONOURED
from isthmus.protocol.json import deep_merge
from isthmus.protocol.responses import CreateResponse

WORDS = st.text("abcdefgh_", min_size=1, max_size=8)
OBJECTS = st.dictionaries(WORDS, WORDS | st.integers() | st.none(), max_size=2)
TOOL = {"type": "function", "name": "f", "parameters": {}}
EXTRAS = ["reasoning.encrypted_content", "message.output_text.logprobs", "file_search_call.results"]
FORMATS = [
    {"type": "text"},
    {"type": "json_object"},
    {"type": "json_schema", "name": "n", "schema": {"type": "object", "properties": {"a": {"minimum": 1}}}},
    {"type": "grammar"},
]

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "model": WORDS,
    "input": st.just("hi"),
    "instructions": WORDS,
    "tools": st.lists(st.just(TOOL), max_size=1),
    "tool_choice": st.sampled_from(["auto", "none", "required", {"type": "function", "name": "f"}]),
    "parallel_tool_calls": st.booleans(),
    "max_tool_calls": st.integers(1, 9),
    "max_output_tokens": st.integers(-1, 10_000),
    "temperature": st.floats(0, 2),
    "top_p": st.floats(0, 1),
    "top_logprobs": st.integers(0, 20),
    "presence_penalty": st.floats(-2, 2),
    "frequency_penalty": st.floats(-2, 2),
    "stop": WORDS | st.lists(WORDS, max_size=2),
    "seed": st.integers(),
    "n": st.integers(0, 3),
    "logprobs": st.booleans(),
    "logit_bias": st.dictionaries(WORDS, st.floats(-9, 9), max_size=2),
    "reasoning": st.fixed_dictionaries(
        {},
        optional={
            "effort": st.sampled_from([*EFFORTS, "ultra", "turbo", None]),
            "summary": st.sampled_from(["auto", "none", None]),
            "generate_summary": st.sampled_from(["auto", None]),
            "context": st.sampled_from(["auto", "all_turns", "current_turn"]),
            "mode": st.sampled_from(["standard", "pro"]),
            "depth": st.integers(),
            "effort.deep": st.integers(),
        },
    ),
    "text": st.fixed_dictionaries(
        {},
        optional={
            "format": st.sampled_from([*FORMATS, None]),
            "verbosity": st.sampled_from(["low", "medium"]),
            "x": st.none(),
        },
    ),
    "truncation": st.sampled_from(["auto", "disabled"]),
    "include": st.lists(st.sampled_from(EXTRAS), max_size=3),
    "stream": st.booleans(),
    "generate": st.booleans(),
    "stream_options": st.fixed_dictionaries({}, optional={"include_obfuscation": st.booleans() | st.none()}),
    "store": st.booleans(),
    "background": st.booleans(),
    "previous_response_id": WORDS,
    "conversation": WORDS,
    "metadata": st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
    "user": WORDS,
    "safety_identifier": WORDS,
    "prompt_cache_key": WORDS,
    "prompt_cache_retention": st.sampled_from(["24h", "in_memory"]),
    "service_tier": st.sampled_from(["auto", "flex"]),
    "prompt": OBJECTS,
    "context_management": st.lists(OBJECTS, max_size=1),
    "client_metadata": OBJECTS,
    "prompt_cache_options": st.sampled_from([{}, {"mode": "implicit"}, {"mode": "explicit", "ttl": "12h"}]),
    "moderation": st.sampled_from([{}, {"model": "m"}, {"policy": {"input": {"mode": "block"}}}]),
    "access_programs": st.sampled_from([{}, {"cyber": "standard"}, {"cyber": "daybreak_red"}]),
    "image": st.sampled_from([{"context_compression": word} for word in ("auto", "enabled", "disabled")]),
    "multi_agent": st.sampled_from([{}, {"enabled": False}, {"enabled": True}]),
}
UNKNOWN = st.dictionaries(
    st.text("abc.[]\"'", min_size=1, max_size=5)
    | st.sampled_from(["reasoning.effort", "text.format", "tools[0]", "max_tokens"]),
    st.integers() | WORDS | st.none() | OBJECTS,
    max_size=3,
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    fields = draw(st.fixed_dictionaries({}, optional={k: v | st.none() for k, v in FIELDS.items()}))
    if fields.get("conversation") is not None:
        fields.pop("previous_response_id", None)
    return {**draw(UNKNOWN), **fields}


RULES = {
    "temperature": ParameterRule(high=1, while_thinking=False),
    "max_output_tokens": ParameterRule(to="max_tokens"),
    "user": ParameterRule(to="user_id"),
    "safety_identifier": ParameterRule(to="user_id"),
    "top_logprobs": ParameterRule(high=5),
    "service_tier": ParameterRule(values=["default"], map={"flex": "default"}),
    "text.verbosity": ParameterRule(to="verbosity"),
    "a": ParameterRule(to="extra.a"),
}
PROVIDERS = [
    ProviderCapabilities(),
    ProviderCapabilities(
        parameters=RULES,
        reasoning=ReasoningSupport(
            effort="native",
            scale=["low", "high", "max"],
            on={"thinking": {"type": "enabled"}},
            off={"thinking": {"type": "disabled"}},
            default_on=True,
            with_history={"thinking": {"keep": "all"}},
        ),
        tool_choice=ToolChoiceSupport(
            supported=frozenset({"auto", "required"}), while_thinking=frozenset({"auto", "none"})
        ),
        response_formats=ResponseFormatSupport(supported=frozenset({"text", "json_object"}), with_tools=False),
        limits=TokenLimits(output=4000, send_default=True),
        allow=frozenset({"stream", "thinking", "max_tokens", "user_id"}),
    ),
    ProviderCapabilities(
        parameters={**RULES, "stream": ParameterRule(values=[False])},
        reasoning=ReasoningSupport(effort="boolean", always={"reasoning_split": True}, unset="off"),
        response_formats=ResponseFormatSupport(
            supported=frozenset({"json_schema"}), drop_keywords=frozenset({"minimum"})
        ),
        streaming_usage=False,
        allow=frozenset({"reasoning_split"}),
    ),
]
PATIENT = [HealthCheck.too_slow]  # a request has many fields to draw
HOSTS = [LIBRARY, Host(honours=HONOURED)]
HARMLESS = {
    *("prompt_cache_key", "prompt_cache_retention", "client_metadata", "safety_identifier", "user"),
    *("reasoning.summary", "reasoning.generate_summary"),
}
"""All that strict mode lets pass: no word of an answer depends on it."""


def owed_paths(body: dict[str, Any]) -> Iterator[str]:
    """The paths that must have a decision: every non-null field, nested options one by one."""
    for name, value in body.items():
        if value is None or name in ("tools", "tool_choice"):
            continue
        if name in ("reasoning", "text"):
            inner = [key for key, one in value.items() if one is not None]
            yield from (f'{name}["{key}"]' if "." in key else f"{name}.{key}" for key in inner)
            if not inner:
                yield name
        elif name.replace("_", "").isalnum():
            yield name
        else:
            quoted = name.replace('"', '\\"')
            yield f'["{quoted}"]'


def test_every_field_of_the_request_is_generated() -> None:
    assert set(FIELDS) == set(CreateResponse.__annotations__)


@given(bodies(), st.sampled_from(PROVIDERS), st.sampled_from(HOSTS), st.booleans())
@settings(max_examples=400, deadline=None, suppress_health_check=PATIENT)
def test_every_field_sent_gets_exactly_one_decision(
    body: dict[str, Any], capabilities: ProviderCapabilities, host: Host, replays: bool
) -> None:
    request = parse_request(body)
    before = copy.deepcopy(body)
    plan = plan_bridge_compatibility(request, capabilities, host, replays_reasoning=replays)
    counted = Counter(decision.path for decision in plan.decisions)
    owed = set(owed_paths(body))
    assert max(counted.values(), default=1) == 1
    assert owed <= set(counted)
    assert set(counted) - owed <= {"reasoning", "max_output_tokens"}
    assert body == before
    for decision in plan.decisions:
        assert decision.reason or decision.action == "supported"
        assert not decision.sends or decision.action in ("supported", "degraded")
    assert all(diagnostic.code in CODES for diagnostic in plan.diagnostics)


@given(bodies(), st.sampled_from(PROVIDERS))
@settings(max_examples=200, deadline=None, suppress_health_check=PATIENT)
def test_strict_mode_leaves_nothing_degraded_or_ignored_that_an_answer_depends_on(
    body: dict[str, Any], capabilities: ProviderCapabilities
) -> None:
    request = parse_request(body)
    lenient = plan_bridge_compatibility(request, capabilities).decisions
    strict = apply_strict(lenient, True)
    assert {decision.action for decision in strict if not decision.harmless} <= {"supported", "rejected"}
    assert {decision.path for decision in strict if decision.harmless} <= HARMLESS
    assert [d.path for d in strict] == [d.path for d in lenient]


@given(bodies(), st.sampled_from(PROVIDERS))
@settings(max_examples=200, deadline=None, suppress_health_check=PATIENT)
def test_nothing_outside_the_allow_list_is_sent(body: dict[str, Any], capabilities: ProviderCapabilities) -> None:
    plan = plan_bridge_compatibility(parse_request(body), capabilities)
    sends = deep_merge(*(decision.sends for decision in plan.decisions))
    kept, stopped = apply_allow_list(sends, capabilities.allow)
    assert kept == sends
    assert not stopped
    assert capabilities.allow is None or set(sends) <= capabilities.allow


@given(bodies(), st.sampled_from(PROVIDERS), st.sampled_from(HOSTS))
@settings(max_examples=100, deadline=None, suppress_health_check=PATIENT)
def test_the_same_request_gives_the_same_plan(
    body: dict[str, Any], capabilities: ProviderCapabilities, host: Host
) -> None:
    one = plan_bridge_compatibility(parse_request(body), capabilities, host)
    two = plan_bridge_compatibility(parse_request(copy.deepcopy(body)), capabilities, host)
    assert repr(one) == repr(two)


@pytest.mark.parametrize("capabilities", PROVIDERS)
def test_an_empty_request_has_only_what_must_be_sent(capabilities: ProviderCapabilities) -> None:
    plan = plan_bridge_compatibility(parse_request({}), capabilities)
    assert all(decision.sends for decision in plan.decisions)
