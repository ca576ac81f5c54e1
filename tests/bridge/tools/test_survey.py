"""What a first look at the tools says: declared, offered, forced."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ProviderCapabilities, ToolSupport
from isthmus.bridge.tools.survey import survey_tools

LOOK: dict[str, Any] = {"type": "function", "name": "look"}
PAINT: dict[str, Any] = {"type": "image_generation"}
CAPABILITIES = ProviderCapabilities(tools=ToolSupport(native=frozenset({"function", "web_search"})))


def test_a_tool_that_nobody_is_told_of_is_declared_but_not_offered() -> None:
    survey = survey_tools([PAINT], (), "auto", CAPABILITIES)
    assert [plan.decision.action for plan in survey.declared] == ["ignored"]
    assert (survey.offered, survey.sends) == ((), False)


def test_the_choice_none_sends_nothing() -> None:
    survey = survey_tools([LOOK], (), "none", CAPABILITIES)
    assert (len(survey.offered), survey.sends) == (1, False)


@pytest.mark.parametrize("choice", ["none", {"type": "none"}], ids=["word", "object"])
def test_words_and_objects_say_the_same(choice: Any) -> None:
    assert survey_tools([LOOK], (), choice, CAPABILITIES).choice.mode == "none"


ENTRY = {"type": "function", "name": "look"}


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        pytest.param(None, None, id="unset"),
        pytest.param("auto", None, id="auto"),
        pytest.param("required", "required", id="required"),
        pytest.param({"type": "required"}, "required", id="required as an object"),
        pytest.param(ENTRY, "function", id="named"),
        pytest.param({"type": "function", "function": {"name": "look"}}, "function", id="named as in chat"),
        pytest.param({"type": "custom", "name": "exec"}, "function", id="what stands for it"),
        pytest.param({"type": "web_search_preview"}, "web_search", id="a hosted one"),
        pytest.param({"type": "function", "name": "ghost"}, None, id="nobody"),
        pytest.param({"type": "image_generation"}, None, id="an ignored one"),
        pytest.param({"type": "allowed_tools", "mode": "required", "tools": [ENTRY]}, "required", id="allowed, flat"),
        pytest.param(
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [ENTRY]}},
            "required",
            id="allowed, nested",
        ),
        pytest.param({"type": "allowed_tools", "tools": [ENTRY]}, None, id="allowed, free"),
        pytest.param("sometimes", None, id="nonsense"),
    ],
)
def test_what_is_forced(choice: Any, forced: str | None) -> None:
    tools = [LOOK, {"type": "custom", "name": "exec"}, {"type": "web_search"}, PAINT]
    assert survey_tools(tools, (), choice, CAPABILITIES).forced == forced


def test_nothing_is_forced_where_no_tool_is_left() -> None:
    assert survey_tools([PAINT], (), "required", CAPABILITIES).forced is None


def test_stored_items_are_told_apart_from_the_clients_own() -> None:
    carrier = {"type": "additional_tools", "tools": [LOOK]}
    other = {"type": "additional_tools", "tools": [{**LOOK, "name": "listen"}]}
    survey = survey_tools(None, [carrier, other], None, CAPABILITIES, stored=1)
    assert [plan.source.path for plan in survey.declared] == ["history[0].tools[0]", "input[0].tools[0]"]
