"""The type of a Response says what is really sent, field by field."""

from __future__ import annotations

from isthmus.bridge.deltas import Finished, Text
from isthmus.protocol.response import FinishedResponse
from isthmus.testing.fold import fold, plan_for
from protocol.typed import fields_of


def test_a_response_has_the_fields_of_its_type_and_no_others() -> None:
    request = {"metadata": {"a": "b"}, "temperature": 0.5, "reasoning": {"effort": "low"}, "text": {"verbosity": "low"}}
    for plan in (plan_for(), plan_for(request), plan_for({"moderation": {"model": "m"}, "service_tier": "flex"})):
        response = fold(Text("hi"), Finished("stop"), plan=plan)
        known, required = fields_of(FinishedResponse)
        assert required <= set(response) <= known
