"""Events of the older methods come out of the one decoder as if they were newer."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.deltas import (
    CallArguments,
    CallOpened,
    Delta,
    Failed,
    Finished,
    ItemBegan,
    ItemEnded,
    Reasoning,
    Text,
    Usage,
    Used,
)
from isthmus.bridge.dialects.codex.decode import LegDecoder, translate_older

Message = tuple[str, dict[str, Any]]


def event(kind: str, **fields: Any) -> Message:
    return f"codex/event/{kind}", {"conversationId": "c", "id": "0", "msg": {"type": kind, **fields}}


def feed(*messages: Message) -> tuple[LegDecoder, list[Delta]]:
    decoder = LegDecoder({"get_weather": "get_weather"})
    deltas = [delta for message in messages for delta in decoder.feed(*message)]
    return decoder, [delta for delta in deltas if not isinstance(delta, ItemBegan | ItemEnded)]


def test_a_newer_message_passes_as_it_is() -> None:
    assert translate_older("item/started", {"item": {}}) == [("item/started", {"item": {}})]


@pytest.mark.parametrize("message", [event("made_up"), ("codex/event", {}), event("token_count", info=None)])
def test_what_says_nothing_becomes_nothing(message: Message) -> None:
    assert translate_older(*message) == []


def test_a_call_ends_its_response_because_nothing_else_would() -> None:
    call = {"callId": "c", "tool": "t"}
    assert [name for name, _ in translate_older("dynamic_tool_call_request", call)] == [
        "rawResponse/completed",
        "item/tool/call",
    ]


def test_a_failed_attempt_is_told_with_its_word_as_newer_binaries_spell_it() -> None:
    [(name, params)] = translate_older(*event("stream_error", message="m", codex_error_info="usage_limit_exceeded"))
    assert (name, params["willRetry"]) == ("error", True)
    assert params["error"] == {"message": "m", "codexErrorInfo": "usageLimitExceeded"}


def test_text_reasoning_usage_and_end() -> None:
    usage = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 2, "total_tokens": 3}
    _, deltas = feed(
        event("agent_reasoning_delta", delta="hm"),
        event("agent_message_delta", delta="hel"),
        event("agent_message", message="hello"),
        event("token_count", info={"last_token_usage": usage}),
        event("task_complete", last_agent_message="hello"),
    )
    assert deltas == [
        Reasoning("hm", "summary"),
        Text("hel"),
        Text("lo"),
        Used(Usage(1, 2, 3)),
        Finished("stop"),
    ]


def test_dynamic_tool_call_request_opens_a_call_and_ends_the_leg() -> None:
    decoder, deltas = feed(
        event("agent_message_delta", delta="hi"),
        event("dynamic_tool_call_request", callId="call_1", tool="get_weather", arguments={"id": 1}),
    )
    assert deltas[1:] == [
        CallOpened(0, "call_1", "get_weather"),
        CallArguments(0, '{"id":1}', whole=True),
        Finished("tool_calls"),
    ]
    assert decoder.state == "paused"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (("error", {"message": "m", "codex_error_info": "usage_limit_exceeded"}), "insufficient_quota"),
        (("turn_aborted", {"reason": "interrupted"}), "server_error"),
    ],
    ids=["error", "aborted"],
)
def test_bad_ends(message: tuple[str, dict[str, Any]], code: str) -> None:
    _, deltas = feed(event(message[0], **message[1]))
    assert [delta.code for delta in deltas if isinstance(delta, Failed)] == [code]
