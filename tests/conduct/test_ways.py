"""Another way to answer: the same server without what it refused, then the fallbacks, each with its reasons told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from conduct.stage import Stage
from isthmus.bridge.types.plan import Lesson, Target
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.ways import Ways
from isthmus.errors import ConfigError, IsthmusError, RequestRefused, UpstreamFailed
from wire.oracle import check_stream

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
ASKED = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}
FULL = UpstreamFailed("it is full", code="server_is_overloaded", status=503)


def refusing(field: str) -> UpstreamFailed:
    return UpstreamFailed(f"unknown field {field}", code="invalid_prompt", status=400, metadata={"refused": field})


class Kept:
    def __init__(self) -> None:
        self.lessons: list[tuple[str, Lesson, Target]] = []

    async def __call__(self, id: str, lesson: Lesson, target: Target) -> None:
        self.lessons.append((id, lesson, target))


def ways_of(stage: Stage, *others: Attempt, body: dict[str, Any] = ASKED, kept: Kept | None = None) -> Ways:
    first = stage.attempt("one", body)
    return Ways("resp_1", first, iter(others), now=lambda: 7.0, keep=kept)


def told_by(attempt: Attempt) -> list[Any]:
    """The notices of its response."""
    attempt.turn.accepted()
    response = attempt.turn.cancel(1).response
    return [said for said in response["isthmus"]["diagnostics"] if said["code"] == "bridge.attempt.failed"]


# ── the same server ────────────────────────────────────────────────────────────────────────────────────


def test_a_field_that_was_sent_on_trust_and_refused_by_name_is_left_out(stage: Stage) -> None:
    ways = ways_of(stage)
    first = ways.current
    assert "tool_choice" in first.plan.body
    assert ways.go_on_after(refusing("tool_choice"))
    assert ways.current is not first
    assert "tool_choice" not in ways.current.plan.body
    assert ways.current.plan.target.provider == "one"


def test_every_field_goes_once(stage: Stage) -> None:
    ways = ways_of(stage)
    assert ways.go_on_after(refusing("tool_choice"))
    assert ways.go_on_after(refusing("parallel_tool_calls"))
    assert not {"tool_choice", "parallel_tool_calls"} & set(ways.current.plan.body)
    assert not ways.go_on_after(refusing("tool_choice")), "it was not sent: the server means something else"


@pytest.mark.parametrize(
    "failure",
    [FULL, UpstreamFailed("bad", status=400), refusing("messages"), refusing("response_format"), RequestRefused("no")],
    ids=["it is full", "no name", "not on trust", "not sent", "not the server's"],
)
def test_any_other_failure_teaches_nothing(stage: Stage, failure: IsthmusError) -> None:
    ways = ways_of(stage)
    assert not ways.go_on_after(failure)


def _strict(lesson: Lesson) -> Attempt:
    raise RequestRefused("`tool_choice` cannot be left out")


def _stubborn(stage: Stage) -> Callable[[Lesson], Attempt]:
    return lambda lesson: stage.attempt("one", ASKED)


@pytest.mark.parametrize("kind", ["cannot be planned anew", "is strict", "still sends it"])
def test_who_cannot_or_will_not_go_without_gets_the_refusal(stage: Stage, kind: str) -> None:
    without = {"cannot be planned anew": None, "is strict": _strict, "still sends it": _stubborn(stage)}[kind]
    first = replace(stage.attempt("one", ASKED), without=without)
    ways = Ways("resp_1", first, iter(()), now=lambda: 7.0, keep=None)
    assert not ways.go_on_after(refusing("tool_choice"))
    assert ways.current is first


def test_who_will_not_go_without_may_still_have_a_fallback(stage: Stage) -> None:
    other = stage.attempt("two", ASKED)
    first = replace(stage.attempt("one", ASKED), without=_strict)
    ways = Ways("resp_1", first, iter([other]), now=lambda: 7.0, keep=None)
    assert ways.go_on_after(refusing("tool_choice"))
    assert ways.current is other


async def test_a_lesson_is_proven_once_the_server_takes_the_request_without(stage: Stage) -> None:
    kept = Kept()
    ways = ways_of(stage, kept=kept)
    ways.go_on_after(refusing("tool_choice"))
    assert kept.lessons == []
    await ways.accepted()
    ((id, lesson, target),) = kept.lessons
    assert (id, lesson) == ("resp_1", Lesson("one", "m", "tool_choice", "required", 7.0))
    assert lesson in target.lessons
    await ways.accepted()
    assert len(kept.lessons) == 1, "a repair is no second proof"


async def test_a_server_that_refuses_all_the_same_teaches_nothing(stage: Stage) -> None:
    kept = Kept()
    ways = ways_of(stage, stage.attempt("two", ASKED), kept=kept)
    ways.go_on_after(refusing("tool_choice"))
    assert ways.go_on_after(FULL)
    assert ways.current.plan.target.provider == "two"
    await ways.accepted()
    assert kept.lessons == []


async def test_without_anybody_to_keep_it_the_request_goes_on(stage: Stage) -> None:
    ways = ways_of(stage)
    ways.go_on_after(refusing("tool_choice"))
    await ways.accepted()


# ── the next one ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "failure", [FULL, RequestRefused("send less"), ConfigError("no key"), IsthmusError("a bug", code="internal_error")]
)
def test_the_next_one_is_tried_after_whatever_failed(stage: Stage, failure: IsthmusError) -> None:
    other = stage.attempt("two", ASKED)
    ways = ways_of(stage, other)
    assert ways.go_on_after(failure)
    assert ways.current is other
    assert not ways.go_on_after(failure), "there is no third"
    assert ways.current is other


def test_whoever_answers_says_who_failed_before_and_why(stage: Stage) -> None:
    ways = ways_of(stage, stage.attempt("two", ASKED), stage.attempt("three", ASKED))
    ways.go_on_after(FULL)
    ways.go_on_after(RequestRefused("send less"))
    said = told_by(ways.current)
    assert [note["message"] for note in said] == [
        "`one/m` failed (it is full); this model answered in its place",
        "`two/m` failed (send less); this model answered in its place",
    ]
    assert [note["metadata"]["reason"] for note in said] == ["server_is_overloaded", "invalid_request"]


def test_the_reasons_are_not_lost_when_the_next_one_has_to_leave_something_out(stage: Stage) -> None:
    ways = ways_of(stage, stage.attempt("two", ASKED))
    ways.go_on_after(FULL)
    assert ways.go_on_after(refusing("tool_choice"))
    assert ways.current.plan.target.provider == "two"
    assert len(told_by(ways.current)) == 1


def test_the_first_one_has_nothing_to_explain(stage: Stage) -> None:
    ways = ways_of(stage)
    ways.go_on_after(refusing("tool_choice"))
    assert told_by(ways.current) == []


# ── in a run ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_asks_without_it_learns_and_answers(stage: Stage) -> None:
    kept = Kept()
    stage.read(stage.run_of("one", "two", keep=kept, **ASKED))
    stage.asked.fail(refusing("tool_choice"))
    stage.quiet()
    assert [asked.provider for asked in stage.upstream.asked] == ["one", "one"]
    stage.asked.accept()
    stage.quiet()
    assert [lesson.parameter for _, lesson, _ in kept.lessons] == ["tool_choice"]
    stage.asked.end("Hello")
    stage.quiet()
    assert check_stream(stage.events)["output_text"] == "Hello"
    assert stage.end.attempts == 2
