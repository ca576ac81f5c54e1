"""What was decided is told: in diagnostics, and in the one refusal that names every blocker."""

from __future__ import annotations

import pytest

from isthmus.bridge.diagnostics import (
    CODES,
    Action,
    CompatibilityDecision,
    CompatibilityPlan,
    apply_needs,
    decide_item,
    diagnose,
    notice,
    refuse_rejected,
    repair_history,
)
from isthmus.errors import RequestRefused

FINE = CompatibilityDecision("model", "supported")
CLAMPED = CompatibilityDecision("temperature", "degraded", "takes 0 to 1", 1, {"temperature": 1})
LOST = CompatibilityDecision("seed", "ignored", "no counterpart")
BLOCKED = CompatibilityDecision("n", "rejected", "one answer", metadata={"error_code": "invalid_value"})


def test_only_what_is_not_plainly_supported_is_told() -> None:
    plan = CompatibilityPlan((FINE, CLAMPED, LOST))
    assert plan.diagnostics is plan.diagnostics, "made once"
    assert [found.to_json() for found in plan.diagnostics] == [
        {
            "code": "bridge.param.degraded",
            "severity": "warn",
            "path": "temperature",
            "message": "takes 0 to 1",
            "action": "degraded",
            "metadata": {"effective_value": 1},
        },
        {
            "code": "bridge.param.ignored",
            "severity": "warn",
            "path": "seed",
            "message": "no counterpart",
            "action": "ignored",
        },
    ]


def test_a_plan_finds_its_decisions_and_what_they_send() -> None:
    plan = CompatibilityPlan((FINE, CLAMPED, LOST))
    assert plan.decision("seed") is LOST
    assert plan.decision("top_p") is None
    assert plan.sends == [{"temperature": 1}]


@pytest.mark.parametrize("action", ["supported", "degraded", "ignored"])
def test_decisions_about_items_have_codes_of_their_own(action: Action) -> None:
    decision = decide_item("input[0]", action, "why", left_out=2)
    assert decision.metadata == {"left_out": 2}
    assert decision.code == ("" if action == "supported" else f"bridge.item.{action}")


def test_every_code_is_one_that_the_reference_explains() -> None:
    made = [decide_item("input[0]", "ignored"), repair_history("input[0]", "moved"), CLAMPED, LOST, BLOCKED]
    told = [diagnose(decision) for decision in made]
    assert {found.code for found in told if found is not None} < set(CODES)


def test_a_notice_is_a_warning_about_the_reply() -> None:
    told = notice("bridge.attempt.failed", "model", "it failed", reason="timeout")
    assert (told.severity, told.action, told.metadata) == ("warn", "degraded", {"reason": "timeout"})


def test_one_refusal_names_every_blocker() -> None:
    refuse_rejected((FINE, CLAMPED, LOST))
    other = CompatibilityDecision("prompt", "rejected", "no store")
    with pytest.raises(RequestRefused, match="`n`: one answer; `prompt`: no store") as refused:
        refuse_rejected((FINE, BLOCKED, other))
    assert (refused.value.param, refused.value.code) == ("n", "invalid_value")
    assert [found["path"] for found in refused.value.metadata["diagnostics"]] == ["n", "prompt"]


def test_a_hosted_tool_that_a_client_needs_is_rejected_where_nobody_runs_it() -> None:
    def tool(kind: str, action: Action = "ignored") -> CompatibilityDecision:
        return CompatibilityDecision("tools[0]", action, "nobody runs it", metadata={"tool": "x", "type": kind})

    decisions = (tool("web_search"), tool("function"), tool("web_search", "degraded"), LOST)
    assert [one.action for one in apply_needs(decisions)] == ["rejected", "ignored", "degraded", "ignored"]
    assert "leave it out" in apply_needs(decisions)[0].reason
