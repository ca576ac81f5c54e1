"""Requests and answers that nobody would write, some hundreds of them, always the same ones: no promise is broken.

`make check-fuzz` looks for new ones.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the time of one thread is read as POSIX has it")


@pytest.mark.parametrize("tight", [False, True], ids=["limits as they are", "tight limits"])
def test_nothing_breaks_a_promise(tight: bool) -> None:
    from bench.fuzz.engine import fuzz, tell
    from bench.fuzz.house import TIGHT, running_house

    with running_house(limits=TIGHT if tight else None) as house:
        outcome = fuzz(house, seed=14, cases=300)
    assert not outcome.findings, tell(outcome)
    assert outcome.lines > 3_000, "it came no farther than the door"
    assert outcome.statuses.get(200, 0) > 50, "hardly anything was let in"


def test_a_seed_makes_the_same_cases() -> None:
    from bench.fuzz.case import change, make

    one, two = random.Random(5), random.Random(5)
    for _ in range(30):
        first, second = make(one), make(two)
        assert first.raw() == second.raw()
        assert change(first, make(one), one).answer(True) == change(second, make(two), two).answer(True)


def test_learning_brings_it_farther_than_what_it_begins_with() -> None:
    """What the corpus is for: cases that change what reached something new reach more of it."""
    from bench.fuzz.case import plain_cases
    from bench.fuzz.edges import edges
    from bench.fuzz.engine import fuzz
    from bench.fuzz.house import running_house

    news: list[int] = []
    with running_house() as house:
        first = len(plain_cases()) + len(list(edges(house.limits)))
        fuzz(house, seed=3, cases=first + 60, look=lambda _, seen: news.append(seen.new))
    assert sum(new > 0 for new in news[first:]) >= 5, "of sixty; a third of them is usual"


def test_native_streams_are_among_the_answers() -> None:
    from bench.fuzz.engine import fuzz, tell
    from bench.fuzz.house import running_house

    ends: set[str] = set()

    def look(case: Any, seen: Any) -> None:
        if str(case.body.get("model")).startswith("native/") and b"event: response.completed" in seen.body:
            ends.add("cut" if case.kept is not None else "sliced" if case.slice else "whole")

    with running_house() as house:
        outcome = fuzz(house, seed=6, cases=400, look=look)
    assert not outcome.findings, tell(outcome)
    assert ends >= {"whole", "sliced"}
