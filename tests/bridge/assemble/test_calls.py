"""Calls on their way out: cut ones, late ones, many of them."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from doubling import LINEAR, growth
from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import CallArguments, CallOpened, Delta, Finished, Text
from isthmus.bridge.dialects.chat.decode import ChatDecoder
from isthmus.bridge.types.clients import MESSAGES
from isthmus.testing.fold import plan_for, stream
from wire.oracle import check_stream

Json = dict[str, Any]
TOOLS = [
    {"type": "custom", "name": "bash"},
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "shell"},
]
PLAN = plan_for({"tools": TOOLS})
HALF = '{"input": "rm -rf ./build'


def whole_reply(arguments: str, finish: str) -> list[Delta]:
    call = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"choices": [{"message": message, "finish_reason": finish}]}
    return ChatDecoder(ReplyRules()).reply(json.dumps(body).encode())


def in_pieces(arguments: str, finish: str) -> list[Delta]:
    return [CallOpened(0, "call_1", "bash"), *(CallArguments(0, char) for char in arguments), Finished(finish)]


def codes(response: Json) -> list[str]:
    """What was said about the answer; the rest is about the request."""
    said = [each for each in response["isthmus"]["diagnostics"] if each["path"].startswith("output")]
    return [each["code"].removeprefix("bridge.tool.") for each in said]


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_half_a_custom_call_in_a_whole_reply_comes_back_as_a_function_call(finish: str) -> None:
    events, response = stream(whole_reply(HALF, finish), plan=PLAN)
    check_stream(events)
    [item] = response["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "bash", HALF)
    assert not any("custom_tool_call" in event["type"] for event in events)
    assert codes(response) == ["call_fallback"]


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
def test_half_a_custom_call_that_was_shown_is_left_open_and_the_response_incomplete(finish: str) -> None:
    events, response = stream(in_pieces(HALF, finish), plan=PLAN)
    kinds = [event["type"] for event in events]
    assert "response.custom_tool_call_input.delta" in kinds
    assert "response.output_item.done" not in kinds
    assert "response.custom_tool_call_input.done" not in kinds
    assert kinds[-1] == "response.incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    [item] = response["output"]
    assert (item["type"], item["status"], item["input"]) == ("custom_tool_call", "incomplete", "rm -rf ./build")
    assert codes(response) == ["call_incomplete"]


def test_half_a_custom_call_that_was_never_shown_comes_back_as_a_function_call_in_a_stream_too() -> None:
    broken = '{"patch": "*** Begin'
    events, response = stream(in_pieces(broken, "tool_calls"), plan=PLAN)
    check_stream(events)
    assert [(item["type"], item["arguments"]) for item in response["output"]] == [("function_call", broken)]


@pytest.mark.parametrize("deltas", [whole_reply(HALF, "length"), in_pieces(HALF, "length")], ids=["whole", "streamed"])
def test_a_custom_call_cut_by_length_is_the_same_whole_and_streamed(deltas: list[Delta]) -> None:
    events, response = stream(deltas, plan=PLAN)
    assert [(item["type"], item["status"]) for item in response["output"]] == [("custom_tool_call", "incomplete")]
    assert not any(event["type"] == "response.output_item.done" for event in events)


@pytest.mark.parametrize("make", [whole_reply, in_pieces], ids=["whole", "streamed"])
def test_arguments_beside_a_custom_input_are_reported(make: Any) -> None:
    events, response = stream(make('{"input": "ls", "timeout": 5}', "tool_calls"), plan=PLAN)
    check_stream(events)
    assert response["output"][0]["input"] == "ls"
    assert codes(response) == ["arguments_ignored"]
    said = response["isthmus"]["diagnostics"][-1]
    assert "`timeout`" in said["message"]
    assert said["path"] == f"output.{response['output'][0]['id']}"


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (CallArguments(0, '{"b": 2}'), ["arguments_ignored"]),
        (CallArguments(0, '{"b": 2}', replace=True), ["arguments_ignored"]),
        (CallArguments(0, "\n"), []),
        (CallArguments(0, '{"a": 1}', replace=True), []),
    ],
    ids=["more", "anew", "blank", "the same again"],
)
def test_arguments_that_come_after_a_call_was_closed_are_reported(late: CallArguments, said: list[str]) -> None:
    events, response = stream(
        [CallOpened(0, "a", "f"), CallArguments(0, '{"a": 1}'), Text("so"), late, Finished("stop")], plan=PLAN
    )
    check_stream(events)
    assert response["output"][0]["arguments"] == '{"a": 1}'
    assert codes(response) == said


def test_however_many_calls_are_open_each_piece_is_looked_at_once() -> None:
    def work(many: int) -> None:
        deltas: list[Delta] = []
        for slot in range(many):
            deltas += [CallOpened(slot, None, "f"), CallArguments(slot, "[1, ")]
        _, response = stream([*deltas, Finished("tool_calls")], plan=PLAN)
        assert len(response["output"]) == many

    assert growth(work, 400) < LINEAR


def test_a_call_that_others_come_between_is_not_read_again_each_time() -> None:
    def work(many: int) -> None:
        deltas: list[Delta] = [CallOpened(0, "a", "f"), CallArguments(0, "[")]
        for number in range(many):
            deltas += [CallArguments(0, "[1]," * 200 + "[1]"), CallOpened(number + 1, None, "f")]
        stream([*deltas, Finished("tool_calls")], plan=PLAN)

    assert growth(work, 1000) < LINEAR


def test_a_long_call_is_not_put_together_again_for_each_fragment() -> None:
    piece = "x" * 10
    deltas = [CallOpened(0, "a", "f"), CallArguments(0, '{"a": "'), *(CallArguments(0, piece) for _ in range(5000))]
    _, response = stream([*deltas, CallArguments(0, '"}'), Finished("tool_calls")], plan=PLAN)
    assert json.loads(response["output"][0]["arguments"]) == {"a": piece * 5000}


@pytest.mark.parametrize(
    ("given", "kept"), [("call_1", True), ("toolu_01-A", True), ("Bash:0", False), ("x" * 65, False), ("a b", False)]
)
def test_ids_of_calls_are_plain_for_clients_that_need_it(given: str, kept: bool) -> None:
    plan = msgspec.structs.replace(plan_for(), client=MESSAGES)
    deltas = [CallOpened(0, given, "f"), CallArguments(0, "{}"), Finished("tool_calls")]
    _, response = stream(deltas, plan=plan)
    (call,) = response["output"]
    assert (call["call_id"] == given) is kept
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", call["call_id"])
    _, other = stream(deltas)
    assert other["output"][0]["call_id"] == given
