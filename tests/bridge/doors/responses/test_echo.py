"""What a Response repeats of its request: what took effect, with the defaults filled in."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.bridge.doors.responses.echo import echo_request
from isthmus.bridge.parse import parse_request


def echo(body: dict[str, Any], *decisions: CompatibilityDecision) -> dict[str, Any]:
    return echo_request(parse_request({"input": "hi", **body}), CompatibilityPlan(decisions))


@pytest.mark.parametrize(
    ("name", "asked", "used", "default"),
    [
        ("temperature", 5, 2, 1.0),
        ("top_p", 3, 1, 1.0),
        ("max_output_tokens", 100, 10, None),
        ("top_logprobs", 50, 20, 0),
        ("service_tier", "fast", "priority", "default"),
    ],
)
def test_a_setting_shows_what_was_asked_sent_or_its_default(name: str, asked: Any, used: Any, default: Any) -> None:
    assert echo({})[name] == default
    assert echo({name: asked}, CompatibilityDecision(name, "supported"))[name] == asked
    assert echo({name: asked}, CompatibilityDecision(name, "degraded", effective_value=used))[name] == used
    assert echo({name: asked}, CompatibilityDecision(name, "ignored"))[name] == default


@pytest.mark.parametrize(
    ("decision", "shown"),
    [
        (CompatibilityDecision("reasoning.effort", "degraded", effective_value="low"), "low"),
        (CompatibilityDecision("reasoning.effort", "degraded", effective_value="enabled"), "medium"),
        (CompatibilityDecision("reasoning.effort", "ignored"), None),
    ],
    ids=["another grade", "a switch", "left out"],
)
def test_the_effort_is_the_one_that_was_sent(decision: CompatibilityDecision, shown: str | None) -> None:
    assert echo({"reasoning": {"effort": "medium"}}, decision)["reasoning"]["effort"] == shown


def test_what_the_bridge_holds_to_itself_stays_as_asked() -> None:
    decisions = [
        CompatibilityDecision(path, "degraded", effective_value="x") for path in ("text.format", "tool_choice")
    ]
    shown = echo({"text": {"format": {"type": "json_object"}}, "tool_choice": "required"}, *decisions)
    assert (shown["text"], shown["tool_choice"]) == ({"format": {"type": "json_object"}}, "required")
