"""Messages saved, repaired and sent: laws."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus import (
    CodePart,
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    RefusalPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    assistant,
    dump_messages,
    load_messages,
    user,
)
from isthmus.client.items import read_output, write_items
from isthmus.client.repair import find_problems, repair
from isthmus.tools.calls import CallError, make_call

TEXT = st.text(max_size=8)
EXTRA = st.dictionaries(TEXT, st.integers() | TEXT, max_size=2)
CALL = st.builds(
    lambda id, name, arguments, bad, extra: make_call(id, name, bad if bad else arguments, provider="p", extra=extra),
    TEXT,
    TEXT,
    EXTRA,
    st.sampled_from(["", "{oops", "[1]"]),
    EXTRA,
)
SIMPLE = st.one_of(
    st.builds(TextPart, TEXT),
    st.builds(ImagePart, TEXT, TEXT),
    st.builds(DocumentPart, TEXT, TEXT, TEXT),
    st.builds(CodePart, TEXT, TEXT),
    st.builds(ThinkingPart, TEXT, EXTRA),
    st.builds(RefusalPart, TEXT),
    st.builds(OpaquePart, EXTRA),
)
PART = st.one_of(
    SIMPLE,
    st.builds(ToolCallPart, CALL),
    st.builds(ToolResultPart, TEXT, TEXT, st.lists(SIMPLE, max_size=2).map(tuple), st.sampled_from(["ok", "error"])),
)
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant", "tool"]), st.lists(PART, max_size=4).map(tuple), EXTRA),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(MESSAGES)
def test_law_saved_messages_come_back_the_same(messages: list[Message]) -> None:
    assert load_messages(json.loads(json.dumps(dump_messages(messages)))) == messages


@settings(max_examples=200, deadline=None)
@given(MESSAGES)
def test_law_a_repaired_history_is_valid_and_repairing_it_again_changes_nothing(messages: list[Message]) -> None:
    once = repair(messages)
    assert find_problems(once.messages) == []
    again = repair(once.messages)
    assert again.messages == once.messages
    assert again.notes == ()


def test_a_valid_history_keeps_its_very_objects() -> None:
    call = ToolCall("c", "t", {})
    given = [
        user("a"),
        assistant(calls=[call]),
        Message("tool", (ToolResultPart("c", "t", (TextPart("1"),)),)),
        user("b"),
    ]
    assert all(one is other for one, other in zip(repair(given).messages, given, strict=True))


PLAIN_CALLS = st.lists(st.dictionaries(TEXT, st.integers(), max_size=2), max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1), PLAIN_CALLS)
def test_law_the_responses_wire_carries_an_assistant_message_whole(text: str, arguments: list[dict[str, int]]) -> None:
    message = assistant(text, calls=[ToolCall(f"c{at}", "t", one) for at, one in enumerate(arguments)])
    assert read_output(write_items([message])) == message


def test_a_cut_off_call_is_marked_so() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}", "status": "incomplete"}
    (call,) = read_output([item]).tool_calls
    assert (call.arguments, call.error) == (
        None,
        CallError("incomplete", "the call was cut off before its arguments were whole"),
    )


def test_an_item_that_nobody_knows_goes_back_as_it_came() -> None:
    item = {"type": "future_call", "id": "x", "data": {"a": 1}}
    assert write_items([read_output([item])]) == [item]
