"""Reading one answer: odd shapes never raise."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.upstream.probe.answers import (
    Answer,
    call_names,
    delta_of,
    finish_of,
    json_of,
    message_of,
    text_of,
    usage_of,
)


@pytest.mark.parametrize(
    "junk", [None, 7, "x", [], [1], {}, {"choices": 1}, {"choices": [1]}, {"choices": [{"message": 1}]}]
)
def test_junk_is_read_as_nothing(junk: Any) -> None:
    answer = Answer(200, junk, (junk,))
    assert message_of(answer) == {}
    assert finish_of(answer) == ""
    assert text_of({"content": junk}) in ("", "x")
    assert call_names({"tool_calls": junk}) == []
    assert delta_of(junk) == {}
    assert not usage_of(answer.events)


def test_an_answer_is_read_for_its_first_choice() -> None:
    calls = [{"function": {"name": "a"}}, {"function": {"name": "b"}}]
    message = {"content": [{"text": "Hel"}, {"text": "lo"}, 7], "tool_calls": calls}
    answer = Answer(200, {"choices": [{"message": message, "finish_reason": "length"}, {"message": {}}]})
    assert message_of(answer) == message
    assert (text_of(message), call_names(message), finish_of(answer)) == ("Hello", ["a", "b"], "length")


def test_a_refused_answer_has_no_message() -> None:
    assert message_of(Answer(400, {"choices": [{"message": {"content": "x"}}]})) == {}


def test_usage_anywhere_in_a_stream_counts() -> None:
    assert usage_of(({"choices": []}, {"usage": {"total_tokens": 3}}))
    assert not usage_of(({"usage": None},))


@pytest.mark.parametrize(
    ("status", "ok", "refused"),
    [(0, False, False), (200, True, False), (204, True, False), (302, False, False)]
    + [(400, False, True), (404, False, True), (422, False, True)]
    + [(status, False, False) for status in (401, 403, 408, 429, 500, 503)],
)
def test_only_a_request_that_was_not_liked_is_refused(status: int, ok: bool, refused: bool) -> None:
    assert (Answer(status).ok, Answer(status).refused) == (ok, refused)


@pytest.mark.parametrize(("text", "value"), [('{"a": 1}', {"a": 1}), (" [1] ", [1]), ("Sure: {}", None), ("", None)])
def test_only_bare_json_counts_as_json(text: str, value: Any) -> None:
    assert json_of(text) == value
