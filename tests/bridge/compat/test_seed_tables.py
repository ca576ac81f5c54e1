"""The tables of the founding documents, row by row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.bridge.capabilities import (
    ParameterRule,
    ProviderCapabilities,
    ReasoningSupport,
    ResponseFormatSupport,
    ToolChoiceSupport,
    ToolSupport,
)
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.contract.planner import plan_output_contract
from isthmus.bridge.diagnostics import CODES, CompatibilityDecision, diagnose, refuse_rejected
from isthmus.bridge.parse import parse_request
from isthmus.errors import RequestRefused

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CAPABLE = ProviderCapabilities(
    provider="acme",
    model="acme-1",
    parameters={"temperature": ParameterRule(high=1), "top_p": ParameterRule()},
    response_formats=ResponseFormatSupport(supported=frozenset({"text", "json_object"})),
)


def decide(path: str, capabilities: ProviderCapabilities = CAPABLE, **fields: Any) -> CompatibilityDecision:
    plan = plan_bridge_compatibility(parse_request({"model": "m", "input": "hi", **fields}), capabilities)
    decision = plan.decision(path)
    assert decision is not None
    return decision


@pytest.mark.parametrize(
    ("fields", "path", "action", "severity", "sends"),
    [
        pytest.param({"top_p": 0.5}, "top_p", "supported", None, {"top_p": 0.5}, id="supported: forwarded as it is"),
        pytest.param({"temperature": 2}, "temperature", "degraded", "warn", {"temperature": 1}, id="degraded"),
        pytest.param({"seed": 7}, "seed", "ignored", "warn", {}, id="ignored: the request goes on without it"),
        pytest.param({"text": {"format": {"type": "xml"}}}, "text.format", "rejected", "error", {}, id="rejected"),
    ],
)
def test_decision_actions(
    fields: dict[str, Any], path: str, action: str, severity: str | None, sends: dict[str, Any]
) -> None:
    decision = decide(path, **fields)
    diagnostic = diagnose(decision)
    assert decision.action == action
    assert decision.sends == sends
    assert (diagnostic.severity if diagnostic else None) == severity
    if action == "rejected":
        with pytest.raises(RequestRefused) as refused:
            refuse_rejected((decision,))
        assert refused.value.param == path
    else:
        refuse_rejected((decision,))


@pytest.mark.parametrize(
    ("domain", "told", "read"),
    [
        pytest.param(
            {"parameters": {name: {} for name in ("stream", "temperature", "top_p", "max_output_tokens", "user")}},
            lambda c: "temperature" in c.parameters and "seed" not in c.parameters,
            True,
            id="parameters",
        ),
        pytest.param(
            {"tools": {"native": ["function", "mcp", "shell", "apply_patch", "custom"]}},
            lambda c: c.tools.native,
            {"function", "mcp", "shell", "apply_patch", "custom"},
            id="tools",
        ),
        pytest.param(
            {"tools": {"degraded": {"mcp": "function"}}}, lambda c: c.tools.degraded["mcp"], "function",
            id="tool degradation",
        ),
        pytest.param(
            {"tool_choice": {"supported": ["auto", "required", "function"]}},
            lambda c: c.tool_choice.supported,
            {"auto", "required", "function"},
            id="tool choice",
        ),
        pytest.param(
            {"response_formats": {"supported": ["text", "json_object", "json_schema"]}},
            lambda c: c.response_formats.supported,
            {"text", "json_object", "json_schema"},
            id="response formats",
        ),
        pytest.param({"reasoning": {"effort": "boolean"}}, lambda c: c.reasoning.effort, "boolean", id="reasoning"),
        pytest.param({"streaming_usage": False}, lambda c: c.streaming_usage, False, id="streaming"),
    ],
)  # fmt: skip
def test_capability_domains(domain: dict[str, Any], told: Any, read: Any) -> None:
    assert told(msgspec.convert(domain, ProviderCapabilities)) == read


def test_an_unknown_capability_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="telepathy"):
        msgspec.convert({"telepathy": True}, ProviderCapabilities)


def formats(*supported: str) -> ProviderCapabilities:
    return ProviderCapabilities(response_formats=ResponseFormatSupport(supported=frozenset(supported)))


@pytest.mark.parametrize("strict", [True, False])
def test_response_format_degradation_json_schema_to_json_object(strict: bool) -> None:
    capabilities = formats("text", "json_object")
    asked = {"type": "json_schema", "name": "weather", "description": "One city.", "schema": SCHEMA, "strict": strict}
    request = parse_request({"model": "m", "input": "hi", "text": {"format": asked}})
    plan = plan_bridge_compatibility(request, capabilities)
    decision = plan.decision("text.format")
    assert decision is not None
    assert (decision.action, decision.effective_value) == ("degraded", "json_object")

    contract = plan_output_contract(request, plan, capabilities.response_formats)
    assert contract.send == {"type": "json_object"}
    for told in ("weather", "One city.", msgspec.json.encode(SCHEMA).decode(), "JSON", "validated"):
        assert told in contract.instruction
    assert contract.requires_valid_json is strict


@pytest.mark.parametrize(
    ("asked", "supported", "action", "effective"),
    [
        ("text", ("text",), "supported", "text"),
        ("json_object", ("text", "json_object"), "supported", "json_object"),
        ("json_object", ("text",), "degraded", "prompt"),
        ("json_schema", ("text", "json_object", "json_schema"), "supported", "json_schema"),
        ("json_schema", ("text", "json_object"), "degraded", "json_object"),
        ("json_schema", ("text",), "degraded", "prompt"),
        ("grammar", ("text", "json_object", "json_schema"), "rejected", None),
    ],
)
def test_response_format_ladder(asked: str, supported: tuple[str, ...], action: str, effective: str | None) -> None:
    decision = decide("text.format", formats(*supported), text={"format": {"type": asked, "schema": SCHEMA}})
    assert (decision.action, decision.effective_value) == (action, effective)


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@pytest.mark.parametrize("effort", EFFORTS)
def test_reasoning_mode_native_forwards_the_effort(effort: str) -> None:
    decision = decide(
        "reasoning.effort",
        ProviderCapabilities(reasoning=ReasoningSupport(effort="native")),
        reasoning={"effort": effort},
    )
    assert (decision.action, decision.sends) == ("supported", {"reasoning_effort": effort})


@pytest.mark.parametrize("effort", EFFORTS)
def test_reasoning_mode_boolean_switches_thinking(effort: str) -> None:
    decision = decide(
        "reasoning.effort",
        ProviderCapabilities(reasoning=ReasoningSupport(effort="boolean")),
        reasoning={"effort": effort},
    )
    assert decision.sends == {"thinking": {"type": "disabled" if effort == "none" else "enabled"}}
    assert decision.action == ("supported" if effort == "none" else "degraded")


@pytest.mark.parametrize("effort", EFFORTS)
def test_reasoning_mode_none_forwards_nothing(effort: str) -> None:
    thinks = ProviderCapabilities(reasoning=ReasoningSupport(effort="none", default_on=True))
    decision = decide("reasoning.effort", thinks, reasoning={"effort": effort})
    assert (decision.action, decision.sends) == ("ignored", {})


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        pytest.param({"metadata": {"a": "b"}}, "metadata", "bridge.param.ignored", id="ignored: metadata"),
        pytest.param({"conversation": "c"}, "conversation", "bridge.param.unsupported", id="unsupported: conversation"),
        pytest.param({"background": True}, "background", "bridge.param.ignored", id="ignored: background"),
        pytest.param(
            {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}}, "text.format", "bridge.param.degraded",
            id="degraded: json_schema to json_object",
        ),
        pytest.param(
            {"text": {"format": {"type": "xml"}}}, "text.format", "bridge.param.unsupported", id="unsupported"
        ),
    ],
)  # fmt: skip
def test_diagnostic_codes(fields: dict[str, Any], path: str, code: str) -> None:
    diagnostic = diagnose(decide(path, **fields))
    assert diagnostic is not None
    assert diagnostic.code == code
    assert code in CODES
    assert diagnostic.message


def test_diagnostic_code_of_tools_varies_in_action_only() -> None:
    for action in ("degraded", "ignored", "rejected"):
        diagnostic = diagnose(CompatibilityDecision("tools[0]", action, "why", code="bridge.tool.compatibility"))  # type: ignore[arg-type]
        assert diagnostic is not None
        assert (diagnostic.code, diagnostic.action) == ("bridge.tool.compatibility", action)


def test_forced_choice_facts_come_from_the_same_domains() -> None:
    """Tool-choice rows are decided in the tools room; here they only decide whether thinking must give way."""
    capabilities = ProviderCapabilities(
        tools=ToolSupport(),
        tool_choice=ToolChoiceSupport(supported=frozenset({"auto", "required"}), while_thinking=frozenset({"auto"})),
        reasoning=ReasoningSupport(effort="boolean", default_on=True),
    )
    tool = {"type": "function", "name": "f", "parameters": {}}
    request = parse_request({"model": "m", "input": "hi", "tools": [tool], "tool_choice": "required"})
    plan = plan_bridge_compatibility(request, capabilities)
    assert plan.thinking is False
    assert plan.decision("tool_choice") is None
