from __future__ import annotations

import json
import timeit
from typing import Any

import msgspec
import pytest

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities, ReasoningSupport, TokenLimits
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.bridge.parse import parse_request
from isthmus.bridge.tools.survey import survey_tools
from isthmus.bridge.types.plan import LIBRARY, Host

PLAIN = ProviderCapabilities(provider="acme", model="acme-1")


def plan(fields: dict[str, Any], capabilities: ProviderCapabilities = PLAIN, host: Host = LIBRARY) -> CompatibilityPlan:
    return plan_bridge_compatibility(parse_request({"model": "m", "input": "hi", **fields}), capabilities, host)


def decide(
    fields: dict[str, Any], path: str, capabilities: ProviderCapabilities = PLAIN, host: Host = LIBRARY
) -> CompatibilityDecision:
    decision = plan(fields, capabilities, host).decision(path)
    assert decision is not None
    return decision


def rules(**parameters: ParameterRule) -> ProviderCapabilities:
    return ProviderCapabilities(parameters=parameters)


def test_a_null_says_no_more_than_an_absent_field() -> None:
    assert plan({"temperature": None}) == plan({})


VALUES: dict[str, Any] = {
    "metadata": {"a": "b"},
    "conversation": "conv_1",
    "background": True,
    "store": True,
    "previous_response_id": "resp_1",
    "stream_options": {"include_obfuscation": True},
    "prompt": {"id": "pmpt_1"},
    "context_management": [{"type": "compaction"}],
}


@pytest.mark.parametrize("name", VALUES)
def test_what_the_host_honours_is_kept_by_the_gateway(name: str) -> None:
    decision = decide({name: VALUES[name]}, name, host=Host(honours=frozenset({name})))
    assert (decision.action, decision.sends) == ("supported", {})
    assert decision.reason == "kept by the gateway, not sent upstream"


@pytest.mark.parametrize("name", VALUES)
def test_what_the_host_does_not_honour_is_ignored_unless_the_question_would_change(name: str) -> None:
    decision = decide({name: VALUES[name]}, name)
    expected = "rejected" if name in ("previous_response_id", "conversation", "prompt") else "ignored"
    assert (decision.action, decision.sends) == (expected, {})
    assert decision.reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("background", False),
        ("store", False),
        ("metadata", {}),
        ("client_metadata", {}),
        ("context_management", []),
        ("stream_options", {}),
        ("stream_options", {"include_obfuscation": False}),
        ("stream_options", {"include_obfuscation": None}),
        ("truncation", "disabled"),
        ("parallel_tool_calls", True),
        ("service_tier", "auto"),
        ("service_tier", "default"),
        ("include", []),
        ("top_logprobs", 0),
        ("logprobs", False),
        ("logit_bias", {}),
        ("presence_penalty", 0),
        ("frequency_penalty", 0.0),
        ("stop", []),
        ("n", 1),
        ("stream", False),
        ("prompt_cache_retention", "in_memory"),
        ("text", {}),
        ("text", {"format": None}),
        ("reasoning", {}),
        ("reasoning", {"effort": None}),
    ],
)
def test_a_value_that_asks_for_nothing_is_supported(name: str, value: Any) -> None:
    decision = decide({name: value}, name)
    assert (decision.action, decision.sends) == ("supported", {})


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"text": {"verbosity": "medium"}}, "text.verbosity"),
        ({"reasoning": {"summary": "none"}}, "reasoning.summary"),
        ({"reasoning": {"context": "auto"}}, "reasoning.context"),
    ],
)
def test_a_nested_value_that_asks_for_nothing_is_supported(fields: dict[str, Any], path: str) -> None:
    assert decide(fields, path).action == "supported"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"temperature": 0.3}, "temperature"),
        ({"max_output_tokens": 100}, "max_output_tokens"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"truncation": "auto"}, "truncation"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"prompt_cache_key": "k"}, "prompt_cache_key"),
        ({"prompt_cache_retention": "24h"}, "prompt_cache_retention"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls"),
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"text": {"colour": "red"}}, "text.colour"),
        ({"reasoning": {"context": "all_turns"}}, "reasoning.context"),
        ({"reasoning": {"depth": 3}}, "reasoning.depth"),
        ({"client_metadata": {"a": 1}}, "client_metadata"),
        ({"user": "u"}, "user"),
        ({"safety_identifier": "u"}, "safety_identifier"),
        ({"include": ["web_search_call.action.sources"]}, "include"),
        ({"flux": 1.21}, "flux"),
        ({"a.b": 1}, '["a.b"]'),
        ({"tools[0]": 1}, '["tools[0]"]'),
        ({"reasoning": {"a.b": 1}}, 'reasoning["a.b"]'),
    ],
)
def test_what_has_no_counterpart_is_ignored_with_a_reason(fields: dict[str, Any], path: str) -> None:
    decision = decide(fields, path)
    assert (decision.action, decision.sends) == ("ignored", {})
    assert decision.reason


@pytest.mark.parametrize(
    ("rule", "value", "action", "effective", "sends"),
    [
        pytest.param(ParameterRule(), 0.5, "supported", 0.5, {"p": 0.5}, id="same name"),
        pytest.param(ParameterRule(to="q"), 0.5, "supported", 0.5, {"q": 0.5}, id="renamed"),
        pytest.param(ParameterRule(to="a.b"), 0.5, "supported", 0.5, {"a": {"b": 0.5}}, id="nested"),
        pytest.param(ParameterRule(low=0.1, high=1), 2, "degraded", 1, {"p": 1}, id="above"),
        pytest.param(ParameterRule(low=0.1, high=1), 0, "degraded", 0.1, {"p": 0.1}, id="below"),
        pytest.param(ParameterRule(high=1.5), 2, "degraded", 1.5, {"p": 1.5}, id="above, a broken bound"),
        pytest.param(ParameterRule(low=1), 0, "degraded", 1, {"p": 1}, id="below, no upper bound"),
        pytest.param(ParameterRule(high=1), True, "supported", True, {"p": True}, id="a boolean is no number"),
        pytest.param(ParameterRule(values=["a", "b"]), "a", "supported", "a", {"p": "a"}, id="an accepted value"),
        pytest.param(ParameterRule(values=["a", "b"]), "c", "ignored", None, {}, id="another value"),
        pytest.param(ParameterRule(values=[True]), 1, "ignored", None, {}, id="true is not one"),
        pytest.param(ParameterRule(values=["a"], map={"c": "a"}), "c", "degraded", "a", {"p": "a"}, id="a substitute"),
        pytest.param(
            ParameterRule(to="no_p", map={"true": False, "false": True}),
            False,
            "supported",
            True,
            {"no_p": True},
            id="a translation",
        ),
        pytest.param(ParameterRule(map={"3": "three"}), 3, "supported", "three", {"p": "three"}, id="a number's key"),
        pytest.param(ParameterRule(map={"x": 1}), ["x"], "supported", ["x"], {"p": ["x"]}, id="a list has no key"),
    ],
)
def test_a_parameter_travels_by_its_rule(
    rule: ParameterRule, value: Any, action: str, effective: Any, sends: dict[str, Any]
) -> None:
    decision = decide({"p": value}, "p", rules(p=rule))
    assert (decision.action, decision.effective_value, decision.sends) == (action, effective, sends)
    assert decision.reason or action == "supported"


def test_a_dotted_rule_is_for_a_nested_field_and_not_for_a_field_with_a_dot_in_its_name() -> None:
    capabilities = ProviderCapabilities(parameters={"text.verbosity": ParameterRule(to="verbosity")})
    made = plan({"text": {"verbosity": "low"}, "text.verbosity": "high"}, capabilities)
    nested, odd = made.decision("text.verbosity"), made.decision('["text.verbosity"]')
    assert nested is not None
    assert nested.sends == {"verbosity": "low"}
    assert odd is not None
    assert odd.action == "ignored"


@pytest.mark.parametrize(("effort", "action"), [("high", "ignored"), ("none", "supported")])
def test_a_parameter_that_thinking_excludes_is_ignored_while_thinking(effort: str, action: str) -> None:
    capabilities = ProviderCapabilities(
        parameters={"temperature": ParameterRule(while_thinking=False)},
        reasoning=ReasoningSupport(effort="boolean"),
    )
    decision = decide({"temperature": 0.2, "reasoning": {"effort": effort}}, "temperature", capabilities)
    assert decision.action == action
    if action == "ignored":
        assert "thinks" in decision.reason


@pytest.mark.parametrize(
    ("usage", "rule", "sends"),
    [
        (True, None, {"stream": True, "stream_options": {"include_usage": True}}),
        (False, None, {"stream": True}),
        (True, ParameterRule(values=[False]), {}),
    ],
    ids=["with usage", "without usage", "a provider that can not stream"],
)
def test_streaming(usage: bool, rule: ParameterRule | None, sends: dict[str, Any]) -> None:
    capabilities = ProviderCapabilities(streaming_usage=usage, parameters={"stream": rule} if rule else {})
    decision = decide({"stream": True}, "stream", capabilities)
    assert decision.sends == sends
    assert decision.action == ("supported" if sends else "degraded")


LIMIT = ParameterRule(to="max_tokens")


@pytest.mark.parametrize(
    ("asked", "limits", "action", "sends"),
    [
        pytest.param(100, TokenLimits(output=500), "supported", {"max_tokens": 100}, id="within"),
        pytest.param(900, TokenLimits(output=500), "degraded", {"max_tokens": 500}, id="clamped to the model"),
        pytest.param(900, TokenLimits(), "supported", {"max_tokens": 900}, id="no known maximum"),
        pytest.param(0, TokenLimits(), "rejected", {}, id="nothing at all"),
        pytest.param(
            None,
            TokenLimits(output=500, send_default=True),
            "supported",
            {"max_tokens": 500},
            id="unasked maximum",
        ),
        pytest.param(
            None, TokenLimits(output=500, default=40), "supported", {"max_tokens": 40}, id="a limit that must be sent"
        ),
        pytest.param(90, TokenLimits(default=40), "supported", {"max_tokens": 90}, id="the client's own in its place"),
    ],
)
def test_the_limit_on_output(asked: int | None, limits: TokenLimits, action: str, sends: dict[str, Any]) -> None:
    capabilities = ProviderCapabilities(parameters={"max_output_tokens": LIMIT}, limits=limits)
    decision = decide({"max_output_tokens": asked}, "max_output_tokens", capabilities)
    assert (decision.action, decision.sends) == (action, sends)


def test_the_limit_is_clamped_by_the_rule_as_well() -> None:
    rule = ParameterRule(to="max_tokens", low=1, high=300)
    capabilities = ProviderCapabilities(parameters={"max_output_tokens": rule}, limits=TokenLimits(output=500))
    decision = decide({"max_output_tokens": 900}, "max_output_tokens", capabilities)
    assert (decision.action, decision.sends) == ("degraded", {"max_tokens": 300})


@pytest.mark.parametrize(
    "limits", [TokenLimits(output=500), TokenLimits(send_default=True)], ids=["not wanted", "not known"]
)
def test_no_limit_is_sent_unasked_otherwise(limits: TokenLimits) -> None:
    capabilities = ProviderCapabilities(parameters={"max_output_tokens": LIMIT}, limits=limits)
    assert plan({}, capabilities).decision("max_output_tokens") is None


def test_several_answers_are_refused() -> None:
    assert decide({"n": 2}, "n", rules(n=ParameterRule())).action == "rejected"


ONE_FIELD = rules(user=ParameterRule(to="user_id"), safety_identifier=ParameterRule(to="user_id"))


def test_of_two_identifiers_for_one_field_the_safety_identifier_wins() -> None:
    made = plan({"user": "old", "safety_identifier": "new"}, ONE_FIELD)
    user, safety = made.decision("user"), made.decision("safety_identifier")
    assert user is not None
    assert safety is not None
    assert (user.action, user.sends) == ("ignored", {})
    assert "safety_identifier" in user.reason
    assert (safety.action, safety.sends) == ("supported", {"user_id": "new"})


@pytest.mark.parametrize(
    ("fields", "capabilities"),
    [
        pytest.param({"user": "u"}, ONE_FIELD, id="alone"),
        pytest.param({"user": "u", "safety_identifier": "s"}, rules(user=ParameterRule(to="user_id")), id="no rival"),
        pytest.param(
            {"user": "u", "safety_identifier": "s"},
            rules(user=ParameterRule(to="user_id"), safety_identifier=ParameterRule()),
            id="another field",
        ),
    ],
)
def test_the_user_is_sent_where_nothing_competes(fields: dict[str, Any], capabilities: ProviderCapabilities) -> None:
    assert decide(fields, "user", capabilities).sends == {"user_id": "u"}


LOGPROBS = "message.output_text.logprobs"


@pytest.mark.parametrize(
    ("asked", "capabilities", "action", "effective", "sends"),
    [
        pytest.param(
            ["reasoning.encrypted_content"], PLAIN, "supported", ["reasoning.encrypted_content"], {}, id="our envelope"
        ),
        pytest.param([LOGPROBS], PLAIN, "ignored", None, {}, id="no probabilities"),
        pytest.param(
            [LOGPROBS],
            rules(top_logprobs=ParameterRule()),
            "supported",
            [LOGPROBS],
            {"logprobs": True},
            id="probabilities",
        ),
        pytest.param(
            ["reasoning.encrypted_content", "file_search_call.results"],
            PLAIN,
            "degraded",
            ["reasoning.encrypted_content"],
            {},
            id="a part",
        ),
        pytest.param(
            ["x"],
            msgspec.structs.replace(rules(include=ParameterRule()), dialect="responses"),
            "supported",
            ["x"],
            {"include": ["x"]},
            id="a native rule",
        ),
    ],
)
def test_include_is_one_decision_that_lists_what_will_be_there(
    asked: list[str], capabilities: ProviderCapabilities, action: str, effective: Any, sends: dict[str, Any]
) -> None:
    decision = decide({"include": asked}, "include", capabilities)
    assert (decision.action, decision.effective_value, decision.sends) == (action, effective, sends)
    if action in ("degraded", "ignored"):
        assert decision.metadata["ignored"] == [name for name in asked if name not in (effective or [])]


def test_probabilities_are_switched_on_together_with_their_number() -> None:
    decision = decide({"top_logprobs": 30}, "top_logprobs", rules(top_logprobs=ParameterRule(high=20)))
    assert (decision.action, decision.sends) == ("degraded", {"logprobs": True, "top_logprobs": 20})


def test_a_native_responses_upstream_needs_no_switch_for_probabilities() -> None:
    capabilities = ProviderCapabilities(dialect="responses", parameters={"top_logprobs": ParameterRule()})
    assert decide({"top_logprobs": 3}, "top_logprobs", capabilities).sends == {"top_logprobs": 3}


@pytest.mark.parametrize("name", ["summary", "generate_summary"])
def test_where_no_summaries_are_made_the_thinking_itself_stands_in(name: str) -> None:
    decision = decide({"reasoning": {name: "auto"}}, f"reasoning.{name}")
    assert (decision.action, decision.sends) == ("degraded", {})
    assert "in their place" in decision.reason


@pytest.mark.parametrize(
    ("options", "path", "action", "sends"),
    [
        ({"summary": "auto"}, "reasoning.summary", "supported", {"reasoning": {"summary": "auto"}}),
        ({"generate_summary": "auto"}, "reasoning.generate_summary", "supported", {"reasoning": {"summary": "auto"}}),
        ({"summary": "auto", "generate_summary": "detailed"}, "reasoning.generate_summary", "ignored", {}),
    ],
)
def test_summaries_where_the_provider_makes_them(
    options: dict[str, Any], path: str, action: str, sends: dict[str, Any]
) -> None:
    capabilities = ProviderCapabilities(reasoning=ReasoningSupport(summary=True))
    decision = decide({"reasoning": options}, path, capabilities)
    assert (decision.action, decision.sends) == (action, sends)


def test_tools_are_left_to_their_own_planner() -> None:
    tool = {"type": "function", "name": "f", "parameters": {}}
    made = plan({"tools": [tool], "tool_choice": "auto"})
    assert [decision.path for decision in made.decisions] == ["model", "input"]


def test_the_allow_list_is_heeded_while_planning() -> None:
    capabilities = ProviderCapabilities(
        parameters={"temperature": ParameterRule(), "top_p": ParameterRule()}, allow=frozenset({"stream", "top_p"})
    )
    made = {d.path: d for d in plan({"temperature": 1, "top_p": 1, "stream": True}, capabilities).decisions}
    assert (made["temperature"].action, made["temperature"].sends) == ("ignored", {})
    assert made["top_p"].action == "supported"
    assert (made["stream"].action, made["stream"].sends) == ("degraded", {"stream": True})
    assert "`stream_options`" in made["stream"].reason


CODEX = {
    "model": "gpt-5.5",
    "stream": True,
    "instructions": "You are a coding agent. " * 200,
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}] * 30,
    "tools": [{"type": "function", "name": f"tool_{i}", "parameters": {"type": "object"}} for i in range(10)],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "01a1e0b8",
    "text": {"verbosity": "low"},
    "client_metadata": {"session_id": "s"},
}


@pytest.mark.measured
def test_planning_a_coding_agents_request_is_cheap() -> None:
    capabilities = ProviderCapabilities(
        parameters={"max_output_tokens": LIMIT},
        reasoning=ReasoningSupport(effort="native", scale=["low", "high", "max"], on={"thinking": {"type": "enabled"}}),
        limits=TokenLimits(output=8000, send_default=True),
    )
    request = parse_request(json.loads(json.dumps(CODEX)))
    survey = survey_tools(request.body.get("tools"), request.items, "auto", capabilities)
    times = timeit.repeat(lambda: plan_bridge_compatibility(request, capabilities, survey=survey), repeat=20, number=20)
    assert min(times) / 20 < 150e-6


TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({"stream": True, "tools": TOOLS}, "ignored"),
        ({"stream": True, "tools": TOOLS, "tool_choice": "none"}, "supported"),
        ({"stream": True}, "supported"),
        ({"tools": TOOLS}, "supported"),
    ],
    ids=["tools in a stream", "tools that stay away", "a stream", "tools"],
)
def test_what_is_refused_in_streams_with_tools_is_left_out_there(fields: dict[str, Any], action: str) -> None:
    capabilities = rules(top_logprobs=ParameterRule(in_tool_streams=False))
    included = {"include": ["message.output_text.logprobs"]}
    assert decide({"top_logprobs": 1, **fields}, "top_logprobs", capabilities).action == action
    assert decide({**included, **fields}, "include", capabilities).action == action
