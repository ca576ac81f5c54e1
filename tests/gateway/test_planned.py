"""The fact that a request was planned, for whoever watches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gateway.house import Heard
from isthmus.gateway.caller import Caller
from isthmus.gateway.planned import tell_planned
from isthmus.ports import Planned
from isthmus.testing.fold import plan_for

PLAN = plan_for()
MADE: Any = SimpleNamespace(id="resp_1", plan=PLAN)


def test_it_says_what_was_asked_what_was_decided_and_how_long_both_took() -> None:
    heard = Heard()
    caller = Caller("ann", request="req_1", asked_at=100.0)
    asked = {"model": "m", "background": True}
    tell_planned(heard, caller, MADE, asked, [{"type": "message"}], 4, 101.5, 104.0)
    assert heard.facts == [
        Planned("resp_1", "req_1", "ann", PLAN, asked, [{"type": "message"}], 4, 1.5, 2.5, background=True)
    ]


def test_of_a_run_that_nobody_asks_for_it_is_not_known_how_long_reading_took() -> None:
    heard = Heard()
    tell_planned(heard, Caller("ann"), MADE, {}, (), 0, 101.5, 104.0)
    (fact,) = heard.facts
    assert isinstance(fact, Planned)
    assert (fact.request, fact.parse_seconds, fact.plan_seconds) == ("", None, 2.5)


def test_without_anybody_who_watches_nothing_is_made() -> None:
    tell_planned(None, Caller(), MADE, {}, (), 0, 0.0, 0.0)
    heard = Heard()
    assert heard.facts == []
