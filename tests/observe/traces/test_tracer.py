"""From the first fact of a request to the last: gathered once, handed over when nothing more is to come."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import RequestRefused
from isthmus.observe.traces import tracer as module
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.outline import own_of
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


def received(id: str = "1", raw: bytes | None = None) -> Received:
    return Received(f"req_{id}", "ann", "k", "", "POST", "/v1/responses", 70, 0.1, raw=raw)


def planned(id: str = "1", *, background: bool = False, request: str = "") -> Planned:
    return Planned(f"resp_{id}", request or f"req_{id}", "ann", PLAN, {"model": "m"}, background=background)


def ended(id: str = "1") -> Ended:
    steps = [(0.1, Sent(f"resp_{id}", "p", "m", 1))]
    return Ended(f"resp_{id}", "ann", "p", "m", 1, "completed", None, None, None, 1.0, None, 0, 0, steps=steps)


def answered(id: str = "1", run: str = "", failure: Any = None, raw: bytes | None = None) -> Answered:
    came = received(id, raw)
    who = ("ann", "k", "", "POST", "/v1/responses")
    return Answered(f"req_{id}", run, *who, 200, failure, False, 0.5, size=70, received=came)


def told(*facts: Any, **rule: Any) -> tuple[Tracer, Taken]:
    taken = Taken()
    tracer = Tracer(taken, CaptureRule(**rule))  # type: ignore[arg-type]
    for fact in facts:
        tracer.tell(fact)
    return tracer, taken


def gathered(draft: Draft) -> list[Any]:
    """All its facts, by what they are."""
    return [fact for fact in (draft.planned, draft.ended, draft.answered) if fact is not None]


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
    facts = [fact for fact in LIVES[life] if isinstance(fact, Planned | Ended | Answered)]  # these tell all others
    assert gathered(draft) == sorted(facts, key=lambda fact: isinstance(fact, Answered))
    assert draft.began <= draft.last
    request = next((fact for fact in facts if isinstance(fact, Answered)), None)
    assert own_of(draft).id == ("resp_1" if request is None else "req_1")
    assert draft.received == (None if request is None else request.received)
    assert draft.weight == 4_000 + (0 if request is None else 70)
    assert tracer._open == {}


def test_facts_of_what_nobody_knows_are_nobodys() -> None:
    tracer, taken = told(SENT, SPOKE, ended())
    assert (taken.drafts, tracer._open) == ([], {})


def test_lives_that_cross_each_other_are_kept_apart() -> None:
    facts = [received("1"), received("2"), planned("2"), planned("1"), ended("1"), answered("2", failure=REFUSED)]
    _, taken = told(*facts, answered("1", "resp_1"))
    assert [own_of(draft).id for draft in taken.drafts] == ["req_2", "req_1"]
    assert [len(gathered(draft)) for draft in taken.drafts] == [2, 3]


def test_how_many_are_open_is_bounded_and_one_more_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 4)
    tracer, taken = told(*(planned(str(number)) for number in range(5)))
    assert len(tracer._open) == 4
    for number in range(5):
        tracer.tell(ended(str(number)))
        tracer.tell(answered(str(number), f"resp_{number}"))
    assert [own_of(draft).id for draft in taken.drafts] == ["req_0", "req_1"]
    assert (taken.lost, tracer._open) == (3, {})
    tracer.tell(answered("5", failure=REFUSED))
    assert own_of(taken.drafts[-1]).id == "req_5"


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
    tracer.tell(answered())
    assert taken.drafts[0].full is full
    now += 60
    tracer.tell(answered(raw=b"{}" if full else None))
    assert taken.drafts[1].full is full, "it was wanted when it came"
    assert tracer.wants_all("ann", "k", 100) is (full and switch is None)
    assert tracer.capturing().full_until is None


def test_a_switch_can_be_taken_back() -> None:
    tracer, _ = told()
    tracer.capture_all(60)
    assert tracer.capture_all(0).full_until is None
    assert not tracer.wants_all("ann", "k", 1)
