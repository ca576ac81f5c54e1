"""The facts of a run's life: once each, in order, with the numbers that a bill and a log line are made of."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gateway.house import Heard
from isthmus.bridge.capabilities import Cost
from isthmus.bridge.contract.check import ContractCheck
from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.conduct.life import MOST_MARKS, Life
from isthmus.errors import UpstreamFailed
from isthmus.ports import (
    Accepted,
    Again,
    AttemptFailed,
    ContractChecked,
    Ended,
    FirstToken,
    Retried,
    Sent,
    ToolRan,
)
from isthmus.testing.fold import plan_for

COST = Cost(input=1.0, output=2.0)
PLAN = plan_for({"top_logprobs": 2, "service_tier": "flex", "temperature": 0.5}, cost=COST)
FAILURE = UpstreamFailed("it is full")
DONE: Any = {"status": "completed", "usage": {"input_tokens": 3}}


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_every_asking_is_told_and_only_a_new_one_is_counted(clock: Clock) -> None:
    heard = Heard()
    life = Life("resp_1", "ann", clock, heard)
    for anew, why in ((True, "first"), (False, "repair"), (True, "first"), (False, "search")):
        life.sent(PLAN, anew=anew, why=why, body=PLAN.body)  # type: ignore[arg-type]
    told = [(1, "first"), (1, "repair"), (2, "anew"), (2, "search")]
    assert heard.facts == [Sent("resp_1", "test", "test-model", *each, PLAN.body) for each in told]  # type: ignore[arg-type]
    assert life.attempts == 2


def test_a_failure_names_the_attempt_that_failed(clock: Clock) -> None:
    heard = Heard()
    life = Life("resp_1", "ann", clock, heard)
    life.sent(PLAN, anew=True)
    life.failed(PLAN, FAILURE)
    assert heard.facts[1:] == [AttemptFailed("resp_1", "test", "test-model", 1, FAILURE)]


def test_only_the_first_word_matters(clock: Clock) -> None:
    heard = Heard()
    life = Life("resp_1", "ann", clock, heard)
    clock.at += 2.5
    say(life)
    clock.at += 1
    say(life)
    assert heard.facts == [FirstToken("resp_1", 2.5)]
    assert life.whole(PLAN, "completed", DONE["usage"], None, background=False).first_token == 2.5


def say(life: Life, event: str = "response.output_text.delta") -> None:
    """As a run does for each batch."""
    life.told([{"type": event}])


@pytest.mark.parametrize("count", [1, 3, MOST_MARKS - 1, MOST_MARKS, 1_000, 100_000])
def test_of_a_stream_a_bounded_number_of_moments_is_remembered_evenly_spread(clock: Clock, count: int) -> None:
    life = Life("resp_1", "ann", clock, Heard())
    for _ in range(count):
        clock.at += 0.5
        say(life)
    whole = life.whole(PLAN, "completed", None, None)
    assert whole.batches == count
    places = [mark.batches for mark in whole.marks]
    assert places[0] == 1
    assert min(count, MOST_MARKS // 2) <= len(places) < MOST_MARKS or count < MOST_MARKS
    gaps = {after - before for before, after in pairwise(places)}
    assert len(gaps) <= 1
    assert count - places[-1] <= max(gaps, default=1)
    assert all(mark.seconds == mark.batches * 0.5 for mark in whole.marks)
    assert {mark.event for mark in whole.marks} == {"output_text.delta"}


def test_times_are_those_between_sending_the_head_the_last_word_and_the_end(clock: Clock) -> None:
    heard = Heard()
    life = Life("resp_1", "ann", clock, heard)
    clock.at += 1
    life.sent(PLAN, anew=True)
    clock.at += 2
    life.accepted()
    clock.at += 4
    life.over()
    clock.at += 8
    check = ContractCheck(True, "{}")
    life.checked([check])
    clock.at += 16
    whole = life.whole(PLAN, "completed", None, None)
    assert (whole.first_byte, whole.settled, whole.seconds) == (2.0, 24.0, 31.0)
    assert heard.facts[1:] == [Accepted("resp_1", 2.0), ContractChecked("resp_1", check, 8.0)]
    assert list(whole.steps) == list(zip([1.0, 3.0, 15.0], heard.facts, strict=True)), "its end tells all of them again"


def test_tools_and_what_happened_below_an_asking_are_told(clock: Clock) -> None:
    heard = Heard()
    life = Life("resp_1", "ann", clock, heard)
    call, ran = ManagedCall("ws_1", "web_search", "web_search", {}, {}), Ran("found")
    life.ran(call, ran, 0.5)
    life.asked_again(PLAN, [Again(FAILURE, 1.5), Again(FAILURE, elsewhere=True)])
    assert heard.facts == [
        ToolRan("resp_1", call, ran, 0.5),
        Retried("resp_1", "test", FAILURE, 1.5),
        Retried("resp_1", "test", FAILURE, 0.0, True),
    ]
    assert [step for _, step in life.whole(PLAN, "completed", None, None).steps] == heard.facts


def test_the_whole_is_made_of_what_is_known(clock: Clock) -> None:
    life = Life("resp_1", "ann", clock, None)
    life.sent(PLAN, anew=True)
    clock.at += 4
    actions = [said.action for said in PLAN.diagnostics]
    assert actions, "the plan has something to count"
    assert life.whole(PLAN, "completed", DONE["usage"], None, background=True) == Ended(
        id="resp_1",
        owner="ann",
        provider="test",
        model="test-model",
        attempts=1,
        outcome="completed",
        failure=None,
        usage={"input_tokens": 3},
        price=3e-06,
        seconds=4.0,
        first_token=None,
        degraded=actions.count("degraded"),
        ignored=actions.count("ignored"),
        background=True,
        used=(3, 0, 0, 0),
        steps=[],
    )


def test_what_never_became_a_response_was_refused(clock: Clock) -> None:
    whole = Life("resp_1", "ann", clock, None).whole(PLAN, "refused", None, FAILURE, background=False)
    assert (whole.outcome, whole.failure, whole.usage) == ("refused", FAILURE, None)


@pytest.mark.parametrize(
    ("status", "asked_again", "known"),
    [("failed", False, True), ("failed", True, False), ("completed", False, False), ("cancelled", False, False)],
)
def test_a_response_that_failed_has_the_failure_of_its_last_attempt_and_no_older_one(
    clock: Clock, status: str, asked_again: bool, known: bool
) -> None:
    life = Life("resp_1", "ann", clock, None)
    life.sent(PLAN, anew=True)
    life.failed(PLAN, FAILURE)
    if asked_again:
        life.sent(PLAN, anew=True)
    ended: Any = {"status": status, "usage": None}
    assert life.whole(PLAN, ended["status"], ended["usage"], None, background=False).failure is (
        FAILURE if known else None
    )


def test_once_told_it_stays_as_it_was(clock: Clock) -> None:
    heard = Heard()
    life = Life("resp_1", "ann", clock, heard)
    clock.at += 1
    whole = life.whole(PLAN, "completed", DONE["usage"], None, background=False)
    life.end(whole)
    clock.at += 1
    assert life.whole(PLAN, "refused", None, FAILURE, background=True) is whole
    assert heard.facts == [whole]


def test_without_anybody_who_watches_nothing_is_missed(clock: Clock) -> None:
    life = Life("resp_1", "ann", clock, None)
    life.sent(PLAN, anew=True)
    life.failed(PLAN, FAILURE)
    life.accepted()
    say(life)
    life.asked_again(PLAN, [Again(FAILURE)])
    life.checked([ContractCheck(True, "")])
    life.end(life.whole(PLAN, "completed", DONE["usage"], None, background=False))
    assert life.whole(PLAN, "refused", None, None, background=False).attempts == 1


def test_the_longest_silence_of_a_stream_is_told_at_its_end(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    at = iter([10.0, 11.0, 12.5, 13.0, 20.0, 21.0])
    monkeypatch.setattr("isthmus.conduct.life.monotonic", lambda: next(at))
    life = Life("resp_1", "ann", clock, Heard())
    for batches in (4, 2):  # what passes between two answers is no silence of either
        life.accepted()
        for _ in range(batches):
            say(life)
    assert life.whole(PLAN, "completed", None, None).longest_gap == 1.5
