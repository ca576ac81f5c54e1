"""Services around the model: what guards somebody is refused, what only reports is left out and said to be."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.parse import parse_request

BLOCK = {"mode": "block"}
SCORE = {"mode": "score"}


def decide(name: str, value: Any, **parameters: ParameterRule) -> CompatibilityDecision:
    request = parse_request({"input": "hi", name: value})
    found = plan_bridge_compatibility(request, ProviderCapabilities(parameters=parameters)).decision(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "value", "action"),
    [
        ("moderation", {"model": "m"}, "ignored"),
        ("moderation", {"model": "m", "policy": {"input": SCORE, "output": SCORE}}, "ignored"),
        ("moderation", {"model": "m", "policy": {"input": BLOCK}}, "rejected"),
        ("moderation", {"model": "m", "policy": {"input": SCORE, "output": BLOCK}}, "rejected"),
        ("moderation", {"policy": {"output": {"mode": "a new one"}}}, "rejected"),
        ("access_programs", {"cyber": "standard"}, "supported"),
        ("access_programs", {"cyber": "daybreak_red"}, "rejected"),
        ("access_programs", {"another": "granted"}, "rejected"),
        ("image", {"context_compression": "auto"}, "supported"),
        ("image", {"context_compression": "disabled"}, "supported"),
        ("image", {"context_compression": "enabled"}, "rejected"),
        ("multi_agent", {"enabled": False, "max_concurrent_subagents": 2}, "supported"),
        ("multi_agent", {"enabled": True}, "rejected"),
        ("prompt_cache_options", {"mode": "implicit"}, "supported"),
        ("prompt_cache_options", {"mode": "explicit"}, "ignored"),
        ("prompt_cache_options", {"mode": "implicit", "ttl": "12h"}, "ignored"),
    ],
)
def test_the_fate_of_a_service(name: str, value: Any, action: str) -> None:
    decision = decide(name, value)
    assert (decision.action, decision.sends) == (action, {})
    assert decision.reason


def test_what_is_refused_names_the_field_to_change() -> None:
    assert "`moderation.policy.output.mode`" in decide("moderation", {"policy": {"output": BLOCK}}).reason
    assert "`access_programs.cyber`" in decide("access_programs", {"cyber": "daybreak_blue"}).reason


@pytest.mark.parametrize("name", ["access_programs", "image", "prompt_cache_options"])
def test_a_provider_that_has_the_service_is_asked_for_it(name: str) -> None:
    value = {
        "access_programs": {"cyber": "daybreak_red"},
        "image": {"context_compression": "enabled"},
        "prompt_cache_options": {"mode": "explicit", "prewarm": True},
    }[name]
    decision = decide(name, {**value, "later": None}, **{name: ParameterRule()})
    assert (decision.action, decision.sends) == ("supported", {name: value})
