"""The finish-reason table: the seed's nine rows by name, then the vendors' own values."""

from __future__ import annotations

import pytest

from isthmus.bridge.deltas import CallArguments, CallOpened, Finished, Text
from isthmus.bridge.finish import map_provider_finish_reason, words_of
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import fold

ROWS = [
    ("stop", "completed", None, None),
    ("tool_calls", "completed", None, None),
    ("length", "incomplete", "max_output_tokens", None),
    ("model_context_window_exceeded", "incomplete", "max_output_tokens", None),
    ("content_filter", "incomplete", "content_filter", None),
    ("sensitive", "incomplete", "content_filter", None),
    ("network_error", "failed", None, "The provider reported a network error."),
    (None, "failed", None, "Provider returned no finish reason"),
    ("gremlins", "failed", None, "Unexpected finish reason `gremlins`"),
]
VENDORS = [
    ("function_call", "completed", None, None),
    ("end_turn", "completed", None, None),
    ("eos", "completed", None, None),
    ("model_length", "incomplete", "max_output_tokens", None),
    ("max_tokens", "incomplete", "max_output_tokens", None),
    ("repetition_truncation", "incomplete", "max_output_tokens", None),
    (
        "insufficient_system_resource",
        "failed",
        None,
        "The provider ran out of resources in mid-answer; try again.",
    ),
    ("abort", "failed", None, "The provider aborted the answer."),
]


@pytest.mark.parametrize(("reason", "status", "incomplete", "message"), ROWS + VENDORS, ids=lambda value: str(value))
def test_each_finish_reason_has_its_status(
    reason: str | None, status: str, incomplete: str | None, message: str | None
) -> None:
    outcome = map_provider_finish_reason(reason)
    assert (outcome.status, outcome.incomplete_reason, outcome.error_message) == (status, incomplete, message or "")


@pytest.mark.parametrize(("reason", "status", "incomplete", "message"), ROWS, ids=lambda value: str(value))
def test_each_finish_reason_shapes_the_response(
    reason: str | None, status: str, incomplete: str | None, message: str | None
) -> None:
    response = fold(Text("hi"), Finished(reason))
    assert response["status"] == status
    assert response["incomplete_details"] == ({"reason": incomplete} if incomplete else None)
    assert (response["error"] or {}).get("message") == message
    assert (response["completed_at"] is not None) == (status == "completed")


def test_a_tool_call_cut_by_length_is_not_complete() -> None:
    response = fold(CallOpened(0, "a", "f"), CallArguments(0, '{"path": "/et'), Finished("length"))
    [call] = response["output"]
    assert (call["type"], call["status"], call["arguments"]) == ("function_call", "incomplete", '{"path": "/et')
    assert response["status"] == "incomplete"
    assert [said["code"] for said in response["isthmus"]["diagnostics"]] == ["bridge.tool.call_incomplete"]


def test_a_call_that_was_whole_before_the_cut_stays_complete() -> None:
    response = fold(CallOpened(0, "a", "f"), CallArguments(0, '{"a": 1}'), Text("and th"), Finished("length"))
    assert [(item["type"], item["status"]) for item in response["output"]] == [
        ("function_call", "completed"),
        ("message", "incomplete"),
    ]


@pytest.mark.parametrize(
    ("message", "code", "wait", "told"),
    [
        ("slow down", "rate_limit_exceeded", 2.5, "slow down; try again in 2.5s"),
        ("slow down", "rate_limit_exceeded", 0.0, "slow down; try again in 0.1s"),
        ("slow down", "rate_limit_exceeded", None, "slow down"),
        ("try again in 9s", "rate_limit_exceeded", 2.5, "try again in 9s"),
        ("broken", "server_error", 2.5, "broken"),
    ],
)
def test_the_wait_for_a_rate_limit_is_told_in_words(message: str, code: str, wait: float | None, told: str) -> None:
    assert words_of(UpstreamFailed(message, code=code, retry_after=wait)) == told
