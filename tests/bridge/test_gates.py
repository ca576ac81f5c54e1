from __future__ import annotations

import pytest

from isthmus.bridge.diagnostics import CODES, CompatibilityDecision, apply_allow_list, apply_strict, diagnose


@pytest.mark.parametrize(
    ("code", "strict_code"),
    [
        ("", "bridge.param.unsupported"),
        ("bridge.param.ignored", "bridge.param.unsupported"),
        ("bridge.tool.compatibility", "bridge.tool.compatibility"),
        ("bridge.item.degraded", "bridge.item.unsupported"),
        ("bridge.item.ignored", "bridge.item.unsupported"),
    ],
)
@pytest.mark.parametrize("action", ["degraded", "ignored"])
def test_strict_mode_rejects_what_would_be_degraded_or_ignored(action: str, code: str, strict_code: str) -> None:
    decision = CompatibilityDecision("p", action, "the old words", 1, {"p": 1}, code)  # type: ignore[arg-type]
    (strict,) = apply_strict((decision,), True)
    diagnostic = diagnose(strict)
    assert diagnostic is not None
    assert (strict.action, strict.sends, strict.effective_value) == ("rejected", {}, None)
    assert strict.reason.startswith("the old words")
    assert "strict mode" in strict.reason
    assert (diagnostic.code, diagnostic.severity) == (strict_code, "error")
    assert strict_code in CODES


def test_strict_mode_leaves_the_other_decisions_alone() -> None:
    decisions = (CompatibilityDecision("a", "supported"), CompatibilityDecision("b", "rejected", "no"))
    assert apply_strict(decisions, True) == decisions


def test_strict_mode_lets_pass_what_no_answer_depends_on_and_it_is_still_told() -> None:
    decisions = (CompatibilityDecision("a", "ignored", "why", harmless=True),)
    assert apply_strict(decisions, True) == decisions
    told = diagnose(decisions[0])
    assert told is not None
    assert (told.action, told.code, told.to_json().get("harmless")) == ("ignored", "bridge.param.ignored", None)


def test_without_strict_mode_nothing_changes() -> None:
    decisions = (CompatibilityDecision("a", "degraded", "why"), CompatibilityDecision("b", "ignored", "why"))
    assert apply_strict(decisions, False) is decisions


def test_a_field_outside_the_allow_list_does_not_leave() -> None:
    body = {"model": "m", "messages": [], "temperature": 1, "thinking": {}}
    kept, decisions = apply_allow_list(body, frozenset({"temperature"}))
    assert kept == {"model": "m", "messages": [], "temperature": 1}
    assert [(d.path, d.action) for d in decisions] == [("upstream.thinking", "ignored")]


def test_without_an_allow_list_everything_leaves() -> None:
    assert apply_allow_list({"a": 1}, None) == ({"a": 1}, ())
