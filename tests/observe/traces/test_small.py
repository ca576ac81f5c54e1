"""What is made at once: only what is surely small."""

from __future__ import annotations

from typing import Any, cast

import pytest

from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.small import SMALL, is_small
from isthmus.ports import Accepted, Answered, Planned, Received, Sent, ToolRan
from isthmus.testing.fold import plan_for

RECEIVED = Received("req_1", "ann", "k", "", "POST", "/v1/responses", 70, 0.1)
PLANNED = Planned("resp_1", "req_1", "ann", plan_for(), {"model": "m"})
CONTINUED = Planned("resp_1", "req_1", "ann", plan_for(), {"model": "m"}, history=3)
SENT, ACCEPTED = Sent("resp_1", "p", "m", 1), Accepted("resp_1", 0.1)
RAN = ToolRan("resp_1", cast(Any, None), None, 0.1)
ANSWERED = Answered("req_1", "", "ann", "k", "", "POST", "/v1/responses", 401, None, False, 0.5)


def draft(*facts: Any, **fields: Any) -> Draft:
    return Draft(1_000.0, 1.0, 2.0, facts=[(1.0, fact) for fact in facts], **fields)


def test_a_request_that_was_asked_once_is_small_up_to_its_bound() -> None:
    asked: dict[str, Any] = {"received": RECEIVED, "planned": PLANNED}
    assert is_small(draft(SENT, ACCEPTED, **asked, weight=SMALL))
    assert not is_small(draft(SENT, ACCEPTED, **asked, weight=SMALL + 1))


def test_what_was_refused_before_it_was_read_is_small() -> None:
    assert is_small(draft(answered=ANSWERED))


@pytest.mark.parametrize(
    "large",
    [
        draft(SENT, ACCEPTED, received=RECEIVED, planned=PLANNED, full=True),
        draft(SENT, ACCEPTED, received=RECEIVED, planned=CONTINUED),
        draft(SENT, ACCEPTED, RAN, SENT, ACCEPTED, received=RECEIVED, planned=PLANNED),
        draft(SENT, ACCEPTED, planned=PLANNED),
    ],
    ids=["all its content is wanted", "it continues a history", "a tool was run", "its request is gone"],
)
def test_what_may_be_long_waits_for_the_thread(large: Draft) -> None:
    assert not is_small(large)
