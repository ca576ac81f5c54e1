"""What a turn commands: an end can be replaced by another one, and stays an end."""

from __future__ import annotations

from isthmus.bridge.at_once import end_here, feed_here
from isthmus.bridge.commands import Done
from isthmus.bridge.deltas import Finished, Text
from isthmus.bridge.turn import Turn
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for


def done() -> Done:
    turn = Turn(plan_for(), response_id="resp_1", now=1)
    turn.accepted()
    feed_here(turn, [Text("hi"), Finished("stop")])
    ended = end_here(turn, 2)
    assert isinstance(ended, Done)
    return ended


def test_what_could_not_be_kept_is_told_as_failed_with_the_same_number() -> None:
    kept = done()
    unkept = kept.unkept("server_error", "the disk is full")
    assert (unkept.response["status"], unkept.response["completed_at"]) == ("failed", None)
    assert unkept.response["error"] == {"code": "server_error", "message": "the disk is full"}
    last: dict[str, object] = {**unkept.events[-1]}
    assert (last["type"], last["sequence_number"]) == ("response.failed", kept.events[-1]["sequence_number"])
    assert last["response"] is unkept.response
    assert kept.response["status"] == "completed"
    assert kept.events[-1]["type"] == "response.completed"


def test_another_end_keeps_the_events_before_it_and_its_failure() -> None:
    failure = UpstreamFailed("gone")
    first = Done(done().response, done().events, failure)
    second = first.replaced({**first.response, "status": "incomplete"})
    assert second.events[:-1] == first.events[:-1]
    assert (second.events[-1]["type"], second.failure) == ("response.incomplete", failure)
