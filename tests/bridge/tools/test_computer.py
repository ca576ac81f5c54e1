"""Actions of a computer: whatever passes is one that OpenAI's own types know; what cannot be meant is no action."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseComputerToolCall

from isthmus.bridge.tools.computer import COMPUTERS, MAX_ACTIONS, describe_computer, read_actions

GOOD: tuple[dict[str, Any], ...] = (
    {"type": "screenshot"},
    {"type": "wait"},
    {"type": "click", "x": 1, "y": 2, "button": "right"},
    {"type": "click", "x": 1, "y": 2, "button": "left", "keys": ["CTRL"]},
    {"type": "double_click", "x": 1, "y": 2},
    {"type": "move", "x": 1, "y": 2},
    {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": -300},
    {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
    {"type": "keypress", "keys": ["CTRL", "L"]},
    {"type": "type", "text": "hello"},
)


@pytest.mark.parametrize("action", GOOD, ids=lambda action: action["type"])
def test_each_action_passes_as_it_is(action: dict[str, Any]) -> None:
    assert read_actions({"actions": [action]}) == [action]
    assert read_actions({"action": action}) == [action]
    assert read_actions(action) == [action]
    for kind, arguments in (("computer", {"actions": [action]}), ("computer_use_preview", {"action": action})):
        assert jsonschema_rs.is_valid(describe_computer(kind, {})[1], arguments)


def test_what_is_left_out_is_what_people_mean() -> None:
    asked = [{"type": "click", "x": 1.4, "y": 2}, {"type": "scroll", "x": 1, "y": 2, "scroll_y": 9}]
    clicked, scrolled = read_actions({"actions": asked}) or ()
    assert clicked == {"type": "click", "x": 1, "y": 2, "button": "left"}
    assert (scrolled["scroll_x"], scrolled["scroll_y"]) == (0, 9)


@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"actions": []}, {"actions": "click"}, {"actions": [1]}, {"action": {"type": "fly"}}),
        *({"type": "click", "x": 1}, {"type": "click", "x": "1", "y": 2}, {"type": "click", "x": True, "y": 2}),
        *({"type": "type"}, {"type": "keypress", "keys": []}, {"type": "drag", "path": [{"x": 1, "y": 2}]}),
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 1}]},
        {"actions": [{"type": "wait"}] * (MAX_ACTIONS + 1)},
        {"actions": [{"type": "wait"}, {"type": "fly"}]},
    ],
)
def test_what_cannot_be_meant_is_no_action(asked: dict[str, Any]) -> None:
    assert read_actions(asked) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "type"]), inner, max_size=3),
    max_leaves=5,
)
actions = st.fixed_dictionaries(
    {"type": st.sampled_from([action["type"] for action in GOOD])},
    optional=dict.fromkeys(("x", "y", "button", "keys", "path", "text", "scroll_x", "scroll_y"), values),
)


@given(st.lists(actions, min_size=1, max_size=4))
def test_whatever_passes_is_known_to_openais_types(asked: list[dict[str, Any]]) -> None:
    found = read_actions({"actions": asked})
    if found is not None:
        item = {"type": "computer_call", "id": "a", "call_id": "b", "status": "completed", "actions": found}
        assert ResponseComputerToolCall.model_validate({**item, "pending_safety_checks": []}).actions


@pytest.mark.parametrize("kind", COMPUTERS)
def test_the_model_is_told_how_large_the_screen_is(kind: str) -> None:
    words, _ = describe_computer(kind, {"display_width": 1024, "display_height": 768, "environment": "browser"})
    assert "(browser)" in words
    assert "1024 by 768 pixels" in words
    assert describe_computer(kind, {"description": "Own words."})[0] == "Own words."
