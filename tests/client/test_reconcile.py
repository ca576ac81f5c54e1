"""The seed's acceptance criteria, by name, and the rules of reconciliation around them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus import (
    Message,
    ToolCall,
    assistant,
    extract_tool_calls_from_message,
    format_tool_call_for_extraction,
    format_tool_calls_for_extraction,
    prepare_tool_call_message,
    reconcile,
    user,
)
from isthmus.client.forms import Form, write_message
from isthmus.errors import RequestRefused
from isthmus.tools.calls import compact_json

ECHO = ToolCall("c1", "echo", {"message": "hi"})
RAW = {"id": "c1", "function": {"name": "echo", "arguments": '{"message":"hi"}'}}


class TestToolCallPathReconciliation:
    def test_converts_unified_tool_calls_to_openai_raw_format(self) -> None:
        assert prepare_tool_call_message(assistant(calls=[ECHO])).metadata["tool_calls"] == [RAW]

    def test_places_converted_calls_in_metadata_tool_calls_of_plain_objects_too(self) -> None:
        message = {"role": "assistant", "toolCalls": [{"id": "c1", "name": "echo", "parameters": {"message": "hi"}}]}
        assert prepare_tool_call_message(message) == {**message, "metadata": {"tool_calls": [RAW]}}

    def test_overwrites_calls_already_in_metadata_by_default(self) -> None:
        message = Message("assistant", assistant(calls=[ECHO]).content, {"tool_calls": [{"id": "old"}]})
        assert prepare_tool_call_message(message).metadata["tool_calls"] == [RAW]

    def test_merges_by_id_when_asked(self) -> None:
        other = {"id": "c2", "function": {"name": "echo", "arguments": "{}"}}
        stale = {"id": "c1", "function": {"name": "echo", "arguments": "{}"}}
        message = Message("assistant", assistant(calls=[ECHO]).content, {"tool_calls": [stale, other]})
        assert prepare_tool_call_message(message, existing="merge").metadata["tool_calls"] == [RAW, other]

    def test_keeps_what_is_there_when_asked(self) -> None:
        message = Message("assistant", assistant(calls=[ECHO]).content, {"tool_calls": [{"id": "old"}]})
        assert prepare_tool_call_message(message, existing="keep") is message

    def test_preserves_existing_metadata(self) -> None:
        message = Message("assistant", assistant(calls=[ECHO]).content, {"trace": "t1"})
        assert prepare_tool_call_message(message).metadata == {"trace": "t1", "tool_calls": [RAW]}

    @pytest.mark.parametrize(
        "message",
        [
            user("hi"),
            assistant("hi"),
            Message("assistant"),
            {"role": "assistant"},
            {"role": "assistant", "toolCalls": []},
        ],
        ids=["user", "text", "empty", "plain", "empty list"],
    )
    def test_gives_the_same_object_back_when_there_is_nothing_to_do(self, message: Any) -> None:
        assert prepare_tool_call_message(message) is message

    def test_never_changes_its_input(self) -> None:
        message = {
            "role": "assistant",
            "toolCalls": [{"id": "c1", "name": "echo", "parameters": {}}],
            "metadata": {"a": 1},
        }
        before = copy.deepcopy(message)
        prepare_tool_call_message(message)
        assert message == before

    def test_returns_the_original_message_when_conversion_is_not_possible(self) -> None:
        message = {"role": "assistant", "toolCalls": [ToolCall("c1", "echo", {"x": float("nan")})]}
        assert prepare_tool_call_message(message) is message


class TestFormatConversion:
    def test_each_call_has_an_id_and_a_function_with_name_and_arguments(self) -> None:
        assert format_tool_call_for_extraction([ECHO]) == [RAW]

    def test_the_type_can_be_included(self) -> None:
        assert format_tool_call_for_extraction([ECHO], include_type=True)[0]["type"] == "function"

    def test_one_call_and_the_plural_name_work_too(self) -> None:
        assert format_tool_calls_for_extraction(ECHO) == [RAW]

    def test_parameters_are_compact_json_with_letters_as_they_are_and_keys_in_order(self) -> None:
        (raw,) = format_tool_call_for_extraction(ToolCall("c", "t", {"z": "ü", "a": [1, None]}))
        assert raw["function"]["arguments"] == '{"z":"ü","a":[1,null]}'

    def test_empty_parameters_are_an_empty_object(self) -> None:
        assert format_tool_call_for_extraction(ToolCall("c", "t", {}))[0]["function"]["arguments"] == "{}"

    def test_unreadable_arguments_are_written_as_the_model_wrote_them(self) -> None:
        (call,) = extract_tool_calls_from_message(
            {"tool_calls": [{"id": "c", "function": {"name": "t", "arguments": "{oops"}}]}
        )
        assert format_tool_call_for_extraction(call)[0]["function"]["arguments"] == "{oops"

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_nan_and_infinity_are_refused(self, value: float) -> None:
        with pytest.raises(RequestRefused, match="`arguments`"):
            format_tool_call_for_extraction(ToolCall("c", "t", {"x": value}))

    def test_the_format_is_what_extraction_expects(self) -> None:
        raw = {"role": "assistant", "metadata": {"tool_calls": format_tool_call_for_extraction([ECHO])}}
        assert extract_tool_calls_from_message(raw) == [ECHO]


FORMS: list[tuple[str, Any]] = [
    (
        "unified, camel",
        {"role": "assistant", "toolCalls": [{"id": "c1", "name": "echo", "parameters": {"message": "hi"}}]},
    ),
    (
        "unified, snake",
        {"role": "assistant", "tool_calls": [{"id": "c1", "name": "echo", "arguments": {"message": "hi"}}]},
    ),
    ("chat", {"role": "assistant", "tool_calls": [{**RAW, "type": "function"}]}),
    ("metadata, snake", {"role": "assistant", "metadata": {"tool_calls": [RAW]}}),
    ("metadata, camel", {"role": "assistant", "metadata": {"toolCalls": [RAW]}}),
    ("our message", assistant(calls=[ECHO])),
    ("our message, metadata only", Message("assistant", (), {"tool_calls": [RAW]})),
    (
        "responses items",
        [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "echo", "arguments": '{"message": "hi"}'},
        ],
    ),
    (
        "responses object",
        {
            "output": [
                {"type": "function_call", "id": "fc", "call_id": "c1", "name": "echo", "arguments": '{"message":"hi"}'}
            ]
        },
    ),
    (
        "anthropic",
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "…"},
                {"type": "tool_use", "id": "c1", "name": "echo", "input": {"message": "hi"}},
            ],
        },
    ),
    ("gemini", {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "echo", "args": {"message": "hi"}}}]}),
    (
        "gemini candidate",
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"id": "c1", "name": "echo", "args": {"message": "hi"}}}],
            }
        },
    ),
]


@pytest.mark.parametrize(("message"), [form for _, form in FORMS], ids=[name for name, _ in FORMS])
def test_every_form_gives_the_same_call(message: Any) -> None:
    (call,) = extract_tool_calls_from_message(message)
    assert (call.id, call.name, call.arguments, call.error) == ("c1", "echo", {"message": "hi"}, None)


class TestSourceOrder:
    def test_an_empty_unified_list_falls_through_to_the_raw_calls(self) -> None:
        found = reconcile({"role": "assistant", "toolCalls": [], "metadata": {"tool_calls": [RAW]}})
        assert (found.source, [call.id for call in found.calls]) == ("metadata", ["c1"])

    def test_equal_calls_in_both_places_are_one(self) -> None:
        found = reconcile(prepare_tool_call_message(assistant(calls=[ECHO])))
        assert (found.calls, found.source, found.conflicts) == ((ECHO,), "unified", ())

    def test_different_calls_with_one_id_are_a_conflict_that_unified_wins(self) -> None:
        raw = {"id": "c1", "function": {"name": "echo", "arguments": '{"message":"other"}'}}
        found = reconcile(Message("assistant", assistant(calls=[ECHO]).content, {"tool_calls": [raw]}))
        assert found.calls == (ECHO,)
        (conflict,) = found.conflicts
        assert (conflict.id, conflict.kept, conflict.source) == ("c1", ECHO, "metadata")
        assert conflict.other.arguments == {"message": "other"}

    def test_ids_that_only_the_raw_place_has_are_appended(self) -> None:
        raw = {"id": "c2", "function": {"name": "echo", "arguments": "{}"}}
        found = reconcile(Message("assistant", assistant(calls=[ECHO]).content, {"tool_calls": [raw]}))
        assert [call.id for call in found.calls] == ["c1", "c2"]

    def test_both_of_two_calls_with_one_id_in_one_place_are_kept(self) -> None:
        assert len(extract_tool_calls_from_message({"tool_calls": [RAW, RAW]})) == 2

    def test_only_assistants_make_calls_unless_asked_otherwise(self) -> None:
        message = {"role": "user", "tool_calls": [RAW]}
        found = reconcile(message)
        assert found.calls == ()
        assert [dropped.reason for dropped in found.dropped] == ["only assistant messages make calls"]
        assert len(extract_tool_calls_from_message(message, any_role=True)) == 1


class TestErrorHandling:
    @pytest.mark.parametrize(
        ("arguments", "expected", "code"),
        [
            ("", {}, None),
            ("  \n", {}, None),
            (None, {}, None),
            ({"a": 1}, {"a": 1}, None),
            ('{"a": 1}', {"a": 1}, None),
            ("null", None, "not_an_object"),
            ("[1]", None, "not_an_object"),
            ("5", None, "not_an_object"),
            (5, None, "not_an_object"),
            ("{oops", None, "malformed_json"),
            ('{"a": NaN}', None, "malformed_json"),
            ('{"a": "\\ud800"}', None, "malformed_json"),
        ],
        ids=repr,
    )
    def test_arguments(self, arguments: object, expected: object, code: str | None) -> None:
        (call,) = extract_tool_calls_from_message(
            {"tool_calls": [{"id": "c", "function": {"name": "t", "arguments": arguments}}]}
        )
        assert call.arguments == expected
        assert (call.error.code if call.error else None) == code

    def test_malformed_calls_are_kept_with_their_error_by_default_and_the_others_survive(self) -> None:
        calls = extract_tool_calls_from_message(
            {"tool_calls": [{"id": "bad", "function": {"name": "t", "arguments": "{"}}, RAW]}
        )
        assert [(call.id, call.error is None) for call in calls] == [("bad", False), ("c1", True)]
        assert calls[0].raw_arguments == "{"

    def test_skip_leaves_them_out_and_reports_them(self) -> None:
        found = reconcile(
            {"tool_calls": [{"id": "bad", "function": {"name": "t", "arguments": "{"}}, RAW]}, malformed="skip"
        )
        assert [call.id for call in found.calls] == ["c1"]
        assert found.dropped[0].index == 0

    def test_raise_names_the_place(self) -> None:
        with pytest.raises(RequestRefused, match=r"`chat\[0\]`"):
            extract_tool_calls_from_message(
                {"tool_calls": [{"function": {"name": "t", "arguments": "{"}}]}, malformed="raise"
            )

    @pytest.mark.parametrize("entry", [None, "text", 5, {}, {"id": "x"}], ids=repr)
    def test_what_is_no_call_at_all_is_reported_not_raised(self, entry: object) -> None:
        found = reconcile({"toolCalls": [entry, {"id": "c", "name": "t"}]})
        assert [call.id for call in found.calls] == ["c"]
        assert found.dropped[0].value == entry

    def test_a_call_without_a_name_is_kept_with_an_error(self) -> None:
        (call,) = extract_tool_calls_from_message({"tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]})
        assert call.error is not None
        assert call.error.code == "missing_name"

    @pytest.mark.parametrize("id", [None, 7, ""], ids=repr)
    def test_a_missing_id_is_made_up_stably_and_flagged(self, id: object) -> None:
        message = {"tool_calls": [{"id": id, "function": {"name": "t", "arguments": "{}"}}]}
        (one,), (two,) = extract_tool_calls_from_message(message), extract_tool_calls_from_message(message)
        assert one.id == two.id
        assert one.id.startswith("call_")
        assert one.extra["synthetic_id"] is True

    @pytest.mark.parametrize(
        "message", [{}, {"role": "assistant", "content": None}, [], {"metadata": None}, Message("user")]
    )
    def test_anything_else_has_no_calls(self, message: Any) -> None:
        assert extract_tool_calls_from_message(message) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(), JSON, max_size=4)
CALLS = st.lists(
    st.builds(lambda name, arguments: (name, arguments), st.text(min_size=1).filter(str.strip), ARGUMENTS), max_size=4
).map(lambda found: [ToolCall(f"c{place}", name, arguments) for place, (name, arguments) in enumerate(found)])


@settings(max_examples=150, deadline=None)
@given(CALLS)
def test_law_preparing_changes_no_call(calls: list[ToolCall]) -> None:
    message = assistant("text", calls=calls)
    assert extract_tool_calls_from_message(prepare_tool_call_message(message)) == list(message.tool_calls)


@settings(max_examples=150, deadline=None)
@given(CALLS)
def test_law_preparing_twice_is_preparing_once(calls: list[ToolCall]) -> None:
    once = prepare_tool_call_message(assistant(calls=calls))
    assert prepare_tool_call_message(once) is once


@settings(max_examples=150, deadline=None)
@given(CALLS, st.sampled_from(["chat", "responses", "anthropic", "gemini"]), st.text())
def test_law_what_a_wire_carries_is_read_back_the_same(calls: list[ToolCall], form: Form, text: str) -> None:
    message = json.loads(compact_json(write_message(calls, form, text)))
    assert extract_tool_calls_from_message(message) == calls
