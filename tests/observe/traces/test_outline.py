"""What is told of a request beside its bodies, whichever of its facts have come."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import RequestRefused
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.outline import Asked, Same, outline_of, same_of, told_of
from isthmus.ports import Answered, Planned
from isthmus.testing.fold import plan_for
from observe.traces.test_packing import ANSWERED, ENDED, PLANNED, draft

REFUSED = RequestRefused("no")


def test_a_usual_request_tells_all() -> None:
    outline = outline_of(draft())
    same, own = outline.same, outline.own
    assert (same.owner, same.key, same.client, same.method, same.path) == (
        *("ann", "k", "codex", "POST"),
        "/v1/chat/completions",
    )
    assert (same.provider, same.model, same.outcome, same.status, same.code) == ("p", "m", "completed", 200, "")
    assert (own.id, own.run, own.client_id, own.size) == ("req_1", "resp_1", "mine", 70)
    assert (own.at, own.total, own.ended_at) == (1_000.0, 1.5, 1_001.5)
    assert (own.spent, own.made, own.cached, own.thought, own.price) == (10, 5, 0, 0, 0.5)
    assert own.overhead == pytest.approx(0.01 + 0.02 + 0.05)
    assert (own.body, own.parse, own.plan, own.settled, own.seconds) == (0.1, 0.01, 0.02, 0.05, 1.0)
    assert own.traceparent == "00-aa-bb-01"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Draft(1.0, 2.0, answered=ANSWERED), ("", "", "answered", "")),
        (Draft(1.0, 2.0, planned=PLANNED), ("deepseek", "deepseek-chat", "refused", "")),
        (Draft(1.0, 2.0, PLANNED, ENDED), ("p", "m", "completed", "")),
        (draft(ended_failure=REFUSED), ("p", "m", "completed", REFUSED.code)),
    ],
    ids=["only answered", "only planned", "without a request", "failed"],
)
def test_what_never_came_is_told_as_nothing(made: Draft, expected: Any) -> None:
    same = outline_of(made).same
    if expected[0] == "deepseek":
        expected = (PLANNED.plan.target.provider, PLANNED.plan.target.model, *expected[2:])
    assert (same.provider, same.model, same.outcome, same.code) == expected


@pytest.mark.parametrize(
    ("status", "failure", "left", "outcome"),
    [
        (200, None, False, "answered"),
        (200, None, True, "cancelled"),
        (500, None, False, "failed"),
        (400, REFUSED, False, "refused"),
    ],
)
def test_how_ended_what_had_no_run(status: int, failure: Any, left: bool, outcome: str) -> None:
    answered = Answered("req_1", "", "ann", "", "", "GET", "/v1/models", status, failure, left, 0.5)
    assert Same(*same_of(Draft(1.0, 1.5, answered=answered))).outcome == outcome


def test_a_run_without_a_request_is_called_by_its_own_name() -> None:
    planned = Planned("resp_1", "", "ann", plan_for(), {})
    own = outline_of(Draft(1.0, 2.0, planned, ENDED)).own
    assert (own.id, own.overhead) == ("resp_1", 0.05)
    unplanned = outline_of(Draft(1.0, 2.0, answered=ANSWERED)).own
    assert (unplanned.plan, unplanned.overhead, unplanned.seconds) == (None, None, None)


def test_of_what_was_asked_only_what_a_summary_tells() -> None:
    assert told_of({"model": "m", "store": False, "input": "secret"}) == Asked(model="m", store=False)
