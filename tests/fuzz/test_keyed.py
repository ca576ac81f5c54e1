"""Every route asked by everybody, with and without keys; `make check-fuzz` does it for longer."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the time of one thread is read as POSIX has it")


class Route(dict[str, Any]):
    endpoint = "responses"


def test_no_key_opens_what_it_should_not_and_nothing_of_ours_fails() -> None:
    from bench.fuzz.keyed import WHO, running_town, sweep, tell

    with running_town() as town:
        swept = sweep(town, seed=22, rounds=1)
        routes = {(method, path) for path, route in town.routes.items() for method in route}
    assert not swept.findings, tell(swept)
    assert routes - swept.reached == {("GET", "/ui/live")}, "routes that nobody came to"
    assert all(swept.statuses[who, 200] for who in WHO), tell(swept)
    assert swept.statuses["nobody", 401] > 40, tell(swept)


def test_the_fuzzer_comes_as_far_behind_keys() -> None:
    from bench.fuzz.engine import fuzz, tell
    from bench.fuzz.house import running_house

    with running_house(key="some-key", operator="operator-key") as house:
        outcome = fuzz(house, seed=22, cases=60)
    assert not outcome.findings, tell(outcome)
    assert outcome.statuses.get(200, 0) > 10, "hardly anything was let in"
    assert 401 not in outcome.statuses or outcome.statuses[401] < 10


@pytest.mark.parametrize(
    ("who", "status", "answer", "words"),
    [
        ("nobody", 200, b"{}", "without a key"),
        ("wrong", 404, b"{}", "without a key"),
        ("bob", 200, b'{"input": "the-words-of-ann"}', "somebody else's words"),
        ("narrow", 200, b"{}", "a narrow key opened it"),
        ("ann", 500, b'{"error": {"code": "internal_error"}}', "a failure of ours"),
        ("ann", 503, b"<html>", "a failure of ours"),
        ("ann", 0, b"", "no answer"),
    ],
)
def test_what_is_wrong_is_seen(who: str, status: int, answer: bytes, words: str) -> None:
    from bench.fuzz.keyed import judge

    route = Route(GET=None)
    assert [each for each in judge("/v1/responses/x", route, "GET", who, status, {}, answer) if words in each]


@pytest.mark.parametrize(
    ("who", "status", "answer"),
    [
        ("nobody", 401, b"{}"),
        ("bob", 404, b"{}"),
        ("ann", 200, b"the-words-of-ann"),
        ("narrow", 403, b"{}"),
        ("ann", 502, b'{"error": {"code": "server_error"}}'),
    ],
)
def test_what_is_right_is_not(who: str, status: int, answer: bytes) -> None:
    from bench.fuzz.keyed import judge

    assert judge("/v1/responses/x", Route(GET=None), "GET", who, status, {}, answer) == []
