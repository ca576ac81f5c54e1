from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import EFFORTS, ProviderCapabilities, ReasoningSupport, ToolChoiceSupport
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.compat.reasoning import plan_reasoning
from isthmus.bridge.diagnostics import apply_strict
from isthmus.bridge.parse import parse_request

ON: dict[str, Any] = {"thinking": {"type": "enabled"}}
OFF: dict[str, Any] = {"thinking": {"type": "disabled"}}
# Four vendors' ways, as their own pages state them.
GRADED = ReasoningSupport(effort="native", scale=["low", "high", "max"], on=ON, off=OFF, default_on=True)
ALWAYS = ReasoningSupport(effort="native", scale=["low", "high", "max"], default_on=True)
NESTED = ReasoningSupport(
    effort="native", to="reasoning.effort", scale=["none", "minimal", "low", "medium", "high", "xhigh"]
)
STATED = ReasoningSupport(
    effort="native",
    scale=["none", "high", "max"],
    map={"minimal": "none", "low": "high", "medium": "high", "xhigh": "max"},
)
WORDS = ReasoningSupport(effort="native", scale=["none", "default"])
SWITCH = ReasoningSupport(effort="boolean", on={"enable_thinking": True}, off={"enable_thinking": False})
STUCK = ReasoningSupport(effort="boolean", on={"enable_thinking": True}, default_on=True)


@pytest.mark.parametrize(
    ("support", "effort", "action", "effective", "sends", "thinking"),
    [
        pytest.param(GRADED, "low", "supported", "low", {**ON, "reasoning_effort": "low"}, True, id="exact"),
        pytest.param(GRADED, "minimal", "degraded", "low", {**ON, "reasoning_effort": "low"}, True, id="nearest"),
        pytest.param(GRADED, "medium", "degraded", "high", {**ON, "reasoning_effort": "high"}, True, id="tie"),
        pytest.param(GRADED, "xhigh", "degraded", "max", {**ON, "reasoning_effort": "max"}, True, id="tie above"),
        pytest.param(GRADED, "ultra", "supported", "max", {**ON, "reasoning_effort": "max"}, True, id="ultra is max"),
        pytest.param(GRADED, "none", "supported", "none", OFF, False, id="off by a switch"),
        pytest.param(ALWAYS, "none", "degraded", "low", {"reasoning_effort": "low"}, True, id="can not be off"),
        pytest.param(
            NESTED, "none", "supported", "none", {"reasoning": {"effort": "none"}}, False, id="off on the scale"
        ),
        pytest.param(NESTED, "max", "degraded", "xhigh", {"reasoning": {"effort": "xhigh"}}, True, id="too strong"),
        pytest.param(STATED, "low", "degraded", "high", {"reasoning_effort": "high"}, True, id="as the vendor states"),
        pytest.param(
            STATED, "minimal", "degraded", "none", {"reasoning_effort": "none"}, False, id="off as the vendor states"
        ),
        pytest.param(WORDS, "default", "supported", "default", {"reasoning_effort": "default"}, True, id="own word"),
        pytest.param(WORDS, "low", "ignored", None, {}, False, id="never none by nearness"),
        pytest.param(SWITCH, "low", "degraded", "enabled", {"enable_thinking": True}, True, id="switch on"),
        pytest.param(SWITCH, "none", "supported", "disabled", {"enable_thinking": False}, False, id="switch off"),
        pytest.param(STUCK, "none", "degraded", "enabled", {"enable_thinking": True}, True, id="a stuck switch"),
        pytest.param(ReasoningSupport(), "high", "ignored", None, {}, False, id="no setting"),
        pytest.param(ReasoningSupport(), "none", "supported", "none", {}, False, id="off where it never was on"),
        pytest.param(ReasoningSupport(default_on=True), "none", "ignored", None, {}, True, id="on for good"),
    ],
)
def test_an_effort_is_said_the_providers_way(
    support: ReasoningSupport, effort: str, action: str, effective: str | None, sends: dict[str, Any], thinking: bool
) -> None:
    plan = plan_reasoning(effort, support)
    decision = plan.decision
    assert decision is not None
    assert decision.path == "reasoning.effort"
    assert (decision.action, decision.effective_value, decision.sends) == (action, effective, sends)
    assert plan.thinking is thinking
    if action != "supported":
        assert decision.reason


@pytest.mark.parametrize("support", [GRADED, ALWAYS, NESTED, STATED, SWITCH, ReasoningSupport()])
def test_an_unknown_effort_is_rejected_with_the_allowed_ones(support: ReasoningSupport) -> None:
    decision = plan_reasoning("turbo", support).decision
    assert decision is not None
    assert decision.action == "rejected"
    assert all(f"`{effort}`" in decision.reason for effort in EFFORTS)


@pytest.mark.parametrize("effort", [effort for effort in EFFORTS if effort != "none"])
@pytest.mark.parametrize("support", [GRADED, ALWAYS, NESTED, WORDS])
def test_nearness_never_switches_thinking_off(support: ReasoningSupport, effort: str) -> None:
    decision = plan_reasoning(effort, support).decision
    assert decision is not None
    assert decision.effective_value != "none"


@pytest.mark.parametrize(
    ("support", "path", "sends", "thinking"),
    [
        pytest.param(ReasoningSupport(), None, {}, False, id="nothing to say"),
        pytest.param(GRADED, None, {}, True, id="the vendor's default"),
        pytest.param(ReasoningSupport(effort="boolean", unset="off"), "reasoning", OFF, False, id="off"),
        pytest.param(ReasoningSupport(effort="boolean", unset="on"), "reasoning", ON, True, id="on"),
        pytest.param(
            ReasoningSupport(effort="native", scale=["none", "low"], unset="off"),
            "reasoning",
            {"reasoning_effort": "none"},
            False,
            id="off on the scale",
        ),
        pytest.param(ReasoningSupport(effort="native", scale=["low"], unset="off"), None, {}, False, id="no off"),
        pytest.param(
            ReasoningSupport(effort="boolean", always={"reasoning_split": True}),
            "reasoning",
            {"reasoning_split": True},
            False,
            id="what every request carries",
        ),
    ],
)
def test_no_effort_asked_for(
    support: ReasoningSupport, path: str | None, sends: dict[str, Any], thinking: bool
) -> None:
    plan = plan_reasoning(None, support)
    assert (plan.decision.path if plan.decision else None) == path
    assert (plan.decision.sends if plan.decision else {}) == sends
    assert plan.thinking is thinking


KEEPS = ReasoningSupport(
    effort="boolean", on=ON, off=OFF, unset="off", with_history={"thinking": {"type": "enabled", "keep": "all"}}
)


@pytest.mark.parametrize(
    ("effort", "replays", "sends", "thinking"),
    [
        pytest.param("high", True, {"thinking": {"type": "enabled", "keep": "all"}}, True, id="asked, replayed"),
        pytest.param("high", False, ON, True, id="asked, nothing replayed"),
        pytest.param("none", True, OFF, False, id="the client's no holds"),
        pytest.param(None, True, {"thinking": {"type": "enabled", "keep": "all"}}, True, id="replay keeps it on"),
        pytest.param(None, False, OFF, False, id="unset"),
    ],
)
def test_replayed_reasoning_brings_its_own_fields(
    effort: str | None, replays: bool, sends: dict[str, Any], thinking: bool
) -> None:
    plan = plan_reasoning(effort, KEEPS, replays_reasoning=replays)
    assert plan.decision is not None
    assert plan.decision.sends == sends
    assert plan.thinking is thinking


FUNCTION = {"type": "function", "name": "f", "parameters": {}}
CHOOSY = ProviderCapabilities(
    reasoning=GRADED,
    tool_choice=ToolChoiceSupport(
        supported=frozenset({"auto", "none", "required", "function"}), while_thinking=frozenset({"auto", "none"})
    ),
)


@pytest.mark.parametrize(
    ("choice", "gives_way"),
    [
        ("auto", False),
        ("none", False),
        ("required", True),
        ({"type": "function", "name": "f"}, True),
        ({"type": "custom", "name": "f"}, True),
        ({"type": "mcp", "server_label": "s"}, False),
        ({"type": "allowed_tools", "mode": "required", "tools": [FUNCTION]}, True),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [FUNCTION]}}, True),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, False),
        ({"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION]}, False),
    ],
)
@pytest.mark.parametrize("effort", ["high", None])
def test_thinking_gives_way_to_a_forced_tool_choice(choice: Any, gives_way: bool, effort: str | None) -> None:
    request = parse_request(
        {"model": "m", "input": "hi", "tools": [FUNCTION], "tool_choice": choice, "reasoning": {"effort": effort}}
    )
    plan = plan_bridge_compatibility(request, CHOOSY)
    decision = plan.decision("reasoning.effort" if effort else "reasoning")
    assert decision is not None
    assert plan.thinking is not gives_way
    assert (decision.action == "degraded") is gives_way
    if gives_way:
        assert decision.sends == OFF
        assert "tool choice" in decision.reason


def test_strict_mode_refuses_to_give_way() -> None:
    request = parse_request({"model": "m", "input": "hi", "tools": [FUNCTION], "tool_choice": "required"})
    (decision,) = apply_strict((plan_bridge_compatibility(request, CHOOSY).decisions[-1],), True)
    assert (decision.path, decision.action) == ("reasoning", "rejected")


@pytest.mark.parametrize(
    ("fields", "capabilities"),
    [
        pytest.param({"tool_choice": "required"}, CHOOSY, id="no tools"),
        pytest.param(
            {"tool_choice": "required", "tools": [FUNCTION]},
            ProviderCapabilities(reasoning=ALWAYS, tool_choice=CHOOSY.tool_choice),
            id="thinking can not be switched off",
        ),
        pytest.param(
            {"tool_choice": "required", "tools": [FUNCTION]}, ProviderCapabilities(reasoning=GRADED), id="no conflict"
        ),
    ],
)
def test_thinking_stays_where_giving_way_would_not_help(
    fields: dict[str, Any], capabilities: ProviderCapabilities
) -> None:
    plan = plan_bridge_compatibility(parse_request({"model": "m", "input": "hi", **fields}), capabilities)
    assert plan.thinking
    assert plan.decision("reasoning") is None


def test_tools_inside_the_input_count_for_a_forced_choice() -> None:
    items = [{"type": "additional_tools", "tools": [FUNCTION]}, {"role": "user", "content": "hi"}]
    plan = plan_bridge_compatibility(parse_request({"model": "m", "input": items, "tool_choice": "required"}), CHOOSY)
    assert not plan.thinking


def test_tools_of_an_earlier_turn_count_as_well() -> None:
    request = parse_request({"model": "m", "input": "hi", "tool_choice": "required"})
    history = [{"type": "additional_tools", "tools": [FUNCTION]}]
    assert not plan_bridge_compatibility(request, CHOOSY, history=history).thinking
    assert plan_bridge_compatibility(request, CHOOSY).thinking


def test_an_effort_can_be_a_number_of_tokens() -> None:
    support = ReasoningSupport(
        effort="native",
        to="thinking.budget_tokens",
        scale=["low", "high"],
        budgets={"low": 1024, "high": 9000},
        on={"thinking": {"type": "enabled"}},
    )
    decision, thinking = plan_reasoning("medium", support)
    assert decision is not None
    assert (decision.action, decision.effective_value, thinking) == ("degraded", "high", True)
    assert decision.sends == {"thinking": {"type": "enabled", "budget_tokens": 9000}}


def test_a_model_that_thinks_only_when_told_is_just_not_told() -> None:
    support = ReasoningSupport(effort="native", scale=["low", "high"], on=ON)
    decision, thinking = plan_reasoning("none", support)
    assert decision is not None
    assert (decision.action, decision.sends, thinking) == ("supported", {}, False)
