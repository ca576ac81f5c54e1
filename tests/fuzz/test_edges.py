"""What every campaign begins with stands where it should: on either side of each bound, whatever the seed."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the time of one thread is read as POSIX has it")


def test_each_bound_has_a_case_on_either_side_of_it_at_both_doors() -> None:
    from bench.fuzz.edges import edges
    from bench.fuzz.house import TIGHT, running_house

    seen: set[tuple[str, bool, bool]] = set()
    with running_house(limits=TIGHT) as house:
        for edge in edges(house.limits):
            answer = house.send(edge.case)
            seen.add((edge.bound, edge.kept, edge.case.chat))
            told = answer.body.decode()
            if edge.kept:
                assert answer.status == 200, (edge.bound, told[:300])
                assert "the limit `limits." not in told, edge.bound
            elif edge.bound.startswith("max_"):
                assert edge.bound in told, (edge.bound, told[:300])
            else:
                assert answer.status >= 400, edge.bound
    bounds = {*TIGHT, "max_body"}
    assert seen >= {(bound, kept, chat) for bound in bounds for kept in (True, False) for chat in (True, False)}
    assert {bound for bound, _, _ in seen} == {*bounds, "quoted", "errors", "waits"}


def test_a_campaign_begins_with_them_whatever_its_seed() -> None:
    from bench.fuzz.case import Case, plain_cases
    from bench.fuzz.edges import edges
    from bench.fuzz.engine import fuzz
    from bench.fuzz.house import TIGHT, running_house

    with running_house(limits=TIGHT) as house:
        expected = [*plain_cases(), *(edge.case for edge in edges(house.limits))]
        assert len(expected) < 120, "what looks for planted weaknesses tries no more"
        for seed in (1, 2):
            tried: list[Case] = []
            fuzz(house, seed=seed, cases=len(expected), look=lambda case, _, tried=tried: tried.append(case))
            assert tried == expected
