"""From the first fact of a request to the last: gathered once, handed over when nothing more is to come."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import RequestRefused
from isthmus.observe.traces import tracer as module
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.tracer import CaptureRule, Tracer
from isthmus.ports import Answered, Ended, FirstToken, Planned, Received, Sent
from isthmus.testing.fold import plan_for

PLAN = plan_for()


class Taken:
    """A recorder that only takes."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.lost = self.kept = self.delayed = 0
        self.cleaner: Any = type("Cleaner", (), {"withheld": 0})

    def put(self, draft: Draft) -> None:
        self.drafts.append(draft)


def received(id: str = "1", owner: str = "ann", key: str = "k", size: int = 70) -> Received:
    return Received(f"req_{id}", owner, key, "", "POST", "/v1/responses", size, 0.1)


def planned(id: str = "1", *, background: bool = False, request: str = "") -> Planned:
    return Planned(f"resp_{id}", request or f"req_{id}", "ann", PLAN, {"model": "m"}, background=background)


def ended(id: str = "1") -> Ended:
    return Ended(f"resp_{id}", "ann", "p", "m", 1, "completed", None, None, None, 1.0, None, 0, 0)


def answered(id: str = "1", run: str = "", failure: Any = None) -> Answered:
    return Answered(f"req_{id}", run, "ann", "k", "", "POST", "/v1/responses", 200, failure, False, 0.5)


def told(*facts: Any, **rule: Any) -> tuple[Tracer, Taken]:
    taken = Taken()
    tracer = Tracer(taken, CaptureRule(**rule))  # type: ignore[arg-type]
    for fact in facts:
        tracer.tell(fact)
    return tracer, taken


def gathered(draft: Draft) -> list[Any]:
    """All its facts, by what they are."""
    facts = [draft.received, draft.planned, *(fact for _, fact in draft.facts), draft.ended, draft.answered]
    return [fact for fact in facts if fact is not None]


SENT, SPOKE = Sent("resp_1", "p", "m", 1), FirstToken("resp_1", 0.2)
REFUSED = RequestRefused("no")
LIVES: dict[str, list[Any]] = {
    "answered": [received(), planned(), SENT, SPOKE, ended(), answered(run="resp_1")],
    "refused while it was read": [received(), answered(failure=REFUSED)],
    "refused by its key": [answered(failure=REFUSED)],
    "in the background": [received(), planned(background=True), answered(run="resp_1"), SENT, SPOKE, ended()],
    "over before its client is answered": [received(), planned(background=True), SENT, ended(), answered(run="resp_1")],
    "planned and never begun": [received(), planned(), answered(run="resp_1", failure=REFUSED)],
    "not begun in the background": [received(), planned(background=True), answered(failure=REFUSED)],
    "made again without a request": [Planned("resp_1", "", "ann", PLAN, {}), SENT, ended()],
}


@pytest.mark.parametrize("life", LIVES)
def test_a_life_becomes_one_draft_at_its_very_end(life: str) -> None:
    *before, last = LIVES[life]
    tracer, taken = told(*before)
    assert taken.drafts == []
    tracer.tell(last)
    (draft,) = taken.drafts
    facts = [fact for fact in LIVES[life] if fact is not SPOKE]  # its end tells of the first token, too
    assert gathered(draft) == sorted(facts, key=lambda fact: isinstance(fact, Answered))
    moments = [draft.began, *(at for at, _ in draft.facts), draft.last]
    assert moments == sorted(moments)
    assert draft.id == ("req_1" if received() in LIVES[life] or isinstance(last, Answered) else "resp_1")
    assert tracer._open == {}


def test_facts_of_what_nobody_knows_are_nobodys() -> None:
    tracer, taken = told(SENT, SPOKE, ended())
    assert (taken.drafts, tracer._open) == ([], {})


def test_lives_that_cross_each_other_are_kept_apart() -> None:
    facts = [received("1"), received("2"), planned("2"), planned("1"), ended("1"), answered("2", failure=REFUSED)]
    _, taken = told(*facts, answered("1", "resp_1"))
    assert [draft.id for draft in taken.drafts] == ["req_2", "req_1"]
    assert [len(gathered(draft)) for draft in taken.drafts] == [3, 4]


def test_how_many_are_open_is_bounded_and_one_more_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 2)
    tracer, taken = told(*(received(str(number)) for number in range(5)))
    assert (taken.lost, len(tracer._open)) == (3, 2)
    tracer.tell(answered("0"))
    assert [draft.id for draft in taken.drafts] == ["req_0"]


@pytest.mark.parametrize(
    ("rule", "switch", "full"),
    [
        ({}, None, False),
        ({"full": True}, None, True),
        ({"full_for": frozenset({"ann"})}, None, True),
        ({"full_for": frozenset({"k"})}, None, True),
        ({"full_for": frozenset({"ben"})}, None, False),
        ({}, {}, True),
        ({}, {"owner": "ann"}, True),
        ({}, {"owner": "ben"}, False),
        ({}, {"key": "k"}, True),
        ({}, {"key": "other"}, False),
        ({}, {"owner": "ann", "key": "other"}, False),
    ],
)
def test_whose_content_is_wanted(rule: Any, switch: Any, full: bool) -> None:
    now = 1_000.0
    taken = Taken()
    tracer = Tracer(taken, CaptureRule(max_content=100, **rule), now=lambda: now)  # type: ignore[arg-type]
    if switch is not None:
        assert tracer.capture_all(60, **switch).full_until == 1_060.0
    assert tracer.wants_all("ann", "k", 100) is full
    assert tracer.wants_all("ann", "k", 101) is False
    tracer.tell(received())
    tracer.tell(answered())
    assert taken.drafts[0].full is full
    now += 60
    assert tracer.wants_all("ann", "k", 100) is (full and switch is None)
    assert tracer.capturing().full_until is None


def test_a_switch_can_be_taken_back() -> None:
    tracer, _ = told()
    tracer.capture_all(60)
    assert tracer.capture_all(0).full_until is None
    assert not tracer.wants_all("ann", "k", 1)
