"""Two things that Codex reads where other clients need not look: thinking as a summary, and waiting times in words."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.deltas import Finished, Reasoning, Text
from isthmus.bridge.turn import Done, Turn
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from wire.oracle import check_response, check_stream


@pytest.mark.parametrize(
    ("asked", "place"),
    [({"summary": "auto"}, "summary"), ({"summary": "none"}, "content"), ({"effort": "high"}, "content")],
    ids=["asked", "declined", "not asked"],
)
def test_thinking_is_shown_as_a_summary_where_one_was_asked_for(asked: dict[str, Any], place: str) -> None:
    turn = Turn(plan_for({"reasoning": asked, "stream": True}), response_id="resp_1", now=1)
    turn.begin(1)
    events = turn.accepted() + turn.feed([Reasoning("Hm."), Text("Hi."), Finished("stop")])
    done = turn.end(2)
    assert isinstance(done, Done)
    check_stream(events + done.events)
    check_response(done.response)
    thought = done.response["output"][0]
    assert [part["text"] for part in thought[place]] == ["Hm."]
    assert not thought.get({"summary": "content", "content": "summary"}[place])


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (UpstreamFailed("slow down", code="rate_limit_exceeded", retry_after=2.5), "slow down; try again in 2.5s"),
        (UpstreamFailed("try again in 1s", code="rate_limit_exceeded", retry_after=9), "try again in 1s"),
        (UpstreamFailed("slow down", code="rate_limit_exceeded"), "slow down"),
        (UpstreamFailed("boom", retry_after=2), "boom"),
    ],
    ids=["told", "already there", "unknown", "another failure"],
)
def test_a_stream_that_is_rate_limited_says_how_long_to_wait(failure: UpstreamFailed, message: str) -> None:
    turn = Turn(plan_for({"stream": True}), response_id="resp_1", now=1)
    turn.begin(1)
    turn.accepted()
    assert turn.fail(failure, 2).response["error"]["message"] == message
