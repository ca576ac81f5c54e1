"""The facts of a run's life: once each, in order, with the numbers that a bill and a log line are made of."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.house import Heard
from isthmus.bridge.capabilities import Cost
from isthmus.conduct.life import Life
from isthmus.errors import UpstreamFailed
from isthmus.ports import AttemptFailed, Ended, FirstToken, Sent
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
    for anew in (True, False, True, False):
        life.sent(PLAN, anew=anew)
    assert heard.facts == [Sent("resp_1", "test", "test-model", attempt) for attempt in (1, 1, 2, 2)]
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
    life.spoke()
    clock.at += 1
    life.spoke()
    assert heard.facts == [FirstToken("resp_1", 2.5)]
    assert life.whole(PLAN, "completed", DONE["usage"], None, background=False).first_token == 2.5


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
        cost=COST,
        seconds=4.0,
        first_token=None,
        degraded=actions.count("degraded"),
        ignored=actions.count("ignored"),
        background=True,
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
    life.spoke()
    life.end(life.whole(PLAN, "completed", DONE["usage"], None, background=False))
    assert life.whole(PLAN, "refused", None, None, background=False).attempts == 1
