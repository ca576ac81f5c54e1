"""What a Response repeats of its request: what took effect, with the defaults filled in."""

from __future__ import annotations

from typing import Any, NotRequired, get_origin, get_type_hints

import pytest

from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.bridge.doors.responses.echo import echo_request
from isthmus.bridge.parse import parse_request
from isthmus.protocol.response import Echo


def echo(body: dict[str, Any], *decisions: CompatibilityDecision) -> dict[str, Any]:
    return echo_request(parse_request({"input": "hi", **body}), CompatibilityPlan(decisions))


def test_every_field_that_a_response_must_have_is_there() -> None:
    declared = get_type_hints(Echo, include_extras=True)
    assert set(echo({})) == {name for name, kind in declared.items() if get_origin(kind) is not NotRequired}


@pytest.mark.parametrize(
    ("name", "asked", "used", "default"),
    [
        ("temperature", 5, 2, 1.0),
        ("top_p", 3, 1, 1.0),
        ("max_output_tokens", 100, 10, None),
        ("top_logprobs", 50, 20, 0),
        ("service_tier", "flex", "priority", "default"),
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


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("fast", "priority"), ("auto", "default"), ("ultrafast", "ultrafast"), ("scale", "scale"), ("mine", "default")],
)
def test_a_tier_is_shown_by_a_name_that_clients_know(asked: str, shown: str) -> None:
    assert echo({"service_tier": asked}, CompatibilityDecision("service_tier", "supported"))["service_tier"] == shown


def test_services_are_shown_only_where_they_were_asked_for() -> None:
    services = {"moderation", "access_programs", "image", "prompt_cache_options", "prompt_cache_diagnostics"}
    assert not services & set(echo({}))
    assert not services & set(echo({"moderation": {"model": None}, "image": {}}))


def test_scores_that_nobody_made_are_errors() -> None:
    shown = echo({"moderation": {"model": "m"}}, CompatibilityDecision("moderation", "ignored"))["moderation"]
    assert [shown[side]["type"] for side in ("input", "output")] == ["error", "error"]


def test_images_are_shown_as_uncompressed_unless_the_provider_compresses() -> None:
    assert echo({"image": {"context_compression": "auto"}})["image"] == {"context_compression": "disabled"}
    assert echo({"image": {"context_compression": "enabled"}})["image"] == {"context_compression": "enabled"}


def test_cache_options_are_shown_where_they_took_effect() -> None:
    asked = {"prompt_cache_options": {"mode": "explicit", "comparison_response_id": "resp_1", "prewarm": True}}
    used = echo(asked, CompatibilityDecision("prompt_cache_options", "supported"))
    assert used["prompt_cache_options"] == {"mode": "explicit", "ttl": "30m", "comparison_response_id": "resp_1"}
    lost = echo(asked, CompatibilityDecision("prompt_cache_options", "ignored"))
    assert "prompt_cache_options" not in lost
    assert used["prompt_cache_diagnostics"] == lost["prompt_cache_diagnostics"] == {"type": "unavailable"}


def test_mode_and_context_of_reasoning_are_those_in_effect() -> None:
    asked = {"reasoning": {"mode": "pro", "context": "current_turn"}}
    assert echo(asked, CompatibilityDecision("reasoning.mode", "ignored"))["reasoning"] == {
        "effort": None,
        "summary": None,
        "context": "current_turn",
    }
