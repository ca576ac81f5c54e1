"""Every failure of a provider names it, once."""

from __future__ import annotations

import pytest

from isthmus.bridge.deltas import Delta, Failed, Text
from isthmus.errors import RateLimited
from isthmus.upstream.naming import name_in, named, named_deltas


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("slow down", "provider `main`: slow down"),
        ("provider `main` was silent", "provider `main` was silent"),
        ("provider `other` was silent", "provider `main`: provider `other` was silent"),
        ("", "provider `main`: "),
    ],
)
def test_the_name_stands_in_front_once(message: str, told: str) -> None:
    assert name_in(message, "main") == told
    assert name_in(told, "main") == told


def test_a_failure_stays_what_it_is_and_says_its_name_in_words_and_facts() -> None:
    failure = RateLimited("slow down", status=429, retry_after=3.0, metadata={"request_id": "r"})
    same = named(failure, "main")
    assert same is failure
    assert (str(same), same.message, same.provider) == (*["provider `main`: slow down"] * 2, "main")
    assert (same.status, same.retry_after, same.request_id) == (429, 3.0, "r")


def test_a_failure_that_knows_its_provider_keeps_it() -> None:
    assert named(RateLimited("x", metadata={"provider": "inner"}), "main").provider == "inner"


def test_only_failures_among_deltas_are_named_and_the_others_are_not_touched() -> None:
    plain: list[Delta] = [Text("Hel"), Text("lo")]
    assert named_deltas(plain, "main") is plain
    mixed = named_deltas([Text("Hel"), Failed("boom", "server_error")], "main")
    assert mixed == [Text("Hel"), Failed("provider `main`: boom", "server_error")]
