"""Chat messages as Responses items, one or several each."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.doors.chat.read_messages import translate_messages
from isthmus.errors import RequestRefused

Json = dict[str, Any]


def said(role: str, content: Any, **more: Any) -> Json:
    return {"type": "message", "role": role, "content": content, **more}


PARTS = [
    {"type": "text", "text": "t"},
    {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
    {"type": "image_url", "image_url": "bare"},
    {"type": "file", "file": {"file_data": "d"}},
    {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
    {"type": "odd"},
]
ITEM_PARTS = [
    {"type": "input_text", "text": "t"},
    {"type": "input_image", "image_url": "u", "detail": "low"},
    {"type": "input_image", "image_url": "bare"},
    {"type": "input_file", "file_data": "d"},
    {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
    {"type": "odd"},
]
FUNCTION = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CUSTOM = {"id": "2", "type": "custom", "custom": {"name": "c", "input": "x"}}

MESSAGES: dict[str, tuple[list[Json], list[Json]]] = {
    "a name": ([{"role": "user", "content": "hi", "name": "ann"}], [said("user", "hi", name="ann")]),
    "system and developer": (
        [{"role": "system", "content": "s"}, {"role": "developer", "content": None}],
        [said("system", "s"), said("developer", None)],
    ),
    "parts": ([{"role": "user", "content": PARTS}], [said("user", ITEM_PARTS)]),
    "everything an assistant does": (
        [
            {
                "role": "assistant",
                "reasoning_content": "r",
                "content": [{"type": "text", "text": "a"}],
                "refusal": "No",
                "tool_calls": [FUNCTION, CUSTOM],
            }
        ],
        [
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
            said("assistant", [{"type": "output_text", "text": "a"}]),
            said("assistant", [{"type": "refusal", "refusal": "No"}]),
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "2", "name": "c", "input": "x"},
        ],
    ),
    "an assistant that said nothing": ([{"role": "assistant", "content": ""}], []),
    "a result": (
        [{"role": "tool", "tool_call_id": "1", "content": None}],
        [{"type": "function_call_output", "call_id": "1", "output": ""}],
    ),
    "a legacy call and its result": (
        [
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "ok"},
            {"role": "function", "name": "g", "content": "?"},
        ],
        [
            {"type": "function_call", "call_id": "call_legacy_0", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_legacy_0", "output": "ok"},
            {"type": "function_call_output", "call_id": "call_legacy_g", "output": "?"},
        ],
    ),
}


@pytest.mark.parametrize(("messages", "items"), MESSAGES.values(), ids=list(MESSAGES))
def test_messages_become_items(messages: list[Json], items: list[Json]) -> None:
    assert translate_messages(messages)[0] == items


def test_every_item_knows_its_message() -> None:
    calls = {"role": "assistant", "content": "a", "tool_calls": [FUNCTION]}
    _, origins = translate_messages([{"role": "user", "content": "hi"}, calls])
    assert origins == {0: "messages[0]", 1: "messages[1]", 2: "messages[1]"}


REFUSED: dict[str, tuple[Json, str, str]] = {
    "an unknown role": ({"role": "narrator"}, "role", "use system, developer, user, assistant or tool"),
    "content of no known kind": ({"role": "user", "content": 7}, "content", "must be a string or a list of parts"),
    "a part that is none": ({"role": "user", "content": ["x"]}, "content[0]", "must be an object"),
    "a result without its call": ({"role": "tool"}, "tool_call_id", "name the call that this message answers"),
    "calls that are no list": ({"role": "assistant", "tool_calls": {"a": 1}}, "tool_calls", "must be a list"),
    "a call that is none": ({"role": "assistant", "tool_calls": [7]}, "tool_calls[0]", "must be an object"),
    "a call without an id": ({"role": "assistant", "tool_calls": [{}]}, "tool_calls[0].id", "is missing"),
    "a call of nothing": ({"role": "assistant", "tool_calls": [{"id": "1"}]}, "tool_calls[0].function", "is missing"),
    "a function without a name": (
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {}}]},
        "tool_calls[0].function.name",
        "is missing",
    ),
    "a custom call without a name": (
        {"role": "assistant", "tool_calls": [{"id": "1", "custom": {"name": ""}}]},
        "tool_calls[0].custom.name",
        "is missing",
    ),
}


@pytest.mark.parametrize(("message", "field", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_wrong_is_named_by_its_place(message: Json, field: str, words: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        translate_messages([{"role": "user", "content": "hi"}, message])
    assert refused.value.param == f"messages[1].{field}"
    assert words in refused.value.message
