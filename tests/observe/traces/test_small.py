"""What is made at once: only what is surely small."""

from __future__ import annotations

from typing import Any, cast

import pytest

from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.small import SMALL, is_small
from isthmus.ports import Accepted, Answered, Ended, Planned, Sent, ToolRan
from isthmus.testing.fold import plan_for

PLANNED = Planned("resp_1", "req_1", "ann", plan_for(), {"model": "m"})
CONTINUED = Planned("resp_1", "req_1", "ann", plan_for(), {"model": "m"}, history=3)
SENT, ACCEPTED = Sent("resp_1", "p", "m", 1), Accepted("resp_1", 0.1)
RAN = ToolRan("resp_1", cast(Any, None), None, 0.1)
ANSWERED = Answered("req_1", "", "ann", "k", "", "POST", "/v1/responses", 200, None, False, 0.5)


def draft(*facts: Any, **fields: Any) -> Draft:
    steps = [(1.0, fact) for fact in facts]
    ended = Ended("resp_1", "ann", "p", "m", 1, "completed", None, None, None, 1.0, None, 0, 0, steps=steps)
    return Draft(1.0, 2.0, ended=ended, **fields)


def test_a_request_that_was_asked_once_is_small_up_to_its_bound() -> None:
    asked: dict[str, Any] = {"answered": ANSWERED, "planned": PLANNED}
    assert is_small(draft(SENT, ACCEPTED, **asked, weight=SMALL))
    assert not is_small(draft(SENT, ACCEPTED, **asked, weight=SMALL + 1))


def test_what_was_refused_before_it_was_read_is_small() -> None:
    assert is_small(draft(answered=ANSWERED))


@pytest.mark.parametrize(
    "large",
    [
        draft(SENT, ACCEPTED, answered=ANSWERED, planned=PLANNED, full=True),
        draft(SENT, ACCEPTED, answered=ANSWERED, planned=CONTINUED),
        draft(SENT, ACCEPTED, RAN, SENT, ACCEPTED, answered=ANSWERED, planned=PLANNED),
        draft(SENT, ACCEPTED, planned=PLANNED),
    ],
    ids=["all its content is wanted", "it continues a history", "a tool was run", "its request is gone"],
)
def test_what_may_be_long_waits_for_the_thread(large: Draft) -> None:
    assert not is_small(large)
