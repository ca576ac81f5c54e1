"""Whom the end of a background response is told, and in which words."""

from __future__ import annotations

import itertools
import json

import pytest

from isthmus.gateway.announce import Announcer
from isthmus.ports import Notice

ENDS = ("completed", "failed", "cancelled", "incomplete")


def announcer(**receivers: frozenset[str]) -> Announcer:
    ids = itertools.count(1)
    return Announcer(receivers, most=7, now=lambda: 1234.9, new_id=lambda prefix: f"{prefix}_{next(ids)}")


@pytest.mark.parametrize("status", ENDS)
def test_every_receiver_gets_the_same_event_under_an_id_of_its_own(status: str) -> None:
    one, two = announcer(one=frozenset(), two=frozenset()).notices("resp_1", "ann", status)
    assert json.loads(one.body) == {
        "id": "evt_1",
        "object": "event",
        "created_at": 1234,
        "type": f"response.{status}",
        "data": {"id": "resp_1"},
    }
    assert one == Notice("wh_2", "one", f"response.{status}", "resp_1", one.body, "ann", 7)
    assert two == Notice("wh_3", "two", f"response.{status}", "resp_1", one.body, "ann", 7)


def test_a_receiver_is_told_of_what_it_wants_to_know() -> None:
    told = announcer(all=frozenset(), bad=frozenset({"response.failed", "response.incomplete"}))
    heard = {status: [notice.endpoint for notice in told.notices("r", "ann", status)] for status in ENDS}
    assert heard == {"completed": ["all"], "failed": ["all", "bad"], "cancelled": ["all"], "incomplete": ["all", "bad"]}


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_what_has_not_ended_is_not_told(status: str) -> None:
    assert announcer(all=frozenset()).notices("r", "ann", status) == ()


def test_without_receivers_nothing_is_told() -> None:
    silent = Announcer()
    silent.queued()
    assert silent.notices("r", "ann", "completed") == ()


def test_a_receiver_is_told_of_its_owners_only() -> None:
    told = Announcer({"all": frozenset(), "mine": frozenset()}, owners={"mine": frozenset({"team:search", "key_1"})})
    heard = {owner: [notice.endpoint for notice in told.notices("r", owner, "completed")] for owner in OWNERS}
    assert heard == {"local": ["all"], "team:search": ["all", "mine"], "key_1": ["all", "mine"], "team:sear": ["all"]}


OWNERS = ("local", "team:search", "key_1", "team:sear")
