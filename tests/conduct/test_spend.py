"""What a run uses of each model."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.deltas import Usage
from isthmus.conduct.spend import Spend, count_input
from isthmus.errors import RequestRefused


class _Thing:
    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


def turn(model: str = "m", usage: Usage | None = None, said: str = "", size: int = 0) -> Any:
    target = _Thing(provider="p", model=model, capabilities=_Thing(cost=None))
    return _Thing(plan=_Thing(target=target, size=size, generates=True), heard=usage, said=said)


class Admitted:
    def __init__(self) -> None:
        self.headers = {"x-ratelimit-limit-requests": "5"}
        self.settled: list[Any] = []

    def settle(self, spent: Any) -> None:
        self.settled.append(spent)


async def entered(spend_of: Admitted) -> Spend:
    async def gate(plan: Any) -> Any:
        return spend_of

    spend = Spend(gate)
    assert await spend.enter(turn().plan) is None
    return spend


async def test_all_askings_of_a_model_are_one_sum_and_each_model_has_its_own() -> None:
    admitted = Admitted()
    spend = await entered(admitted)
    for _ in range(3):
        spend.sent(turn().plan.target)
        spend.heard(turn(usage=Usage(10, 5, 15, cached_tokens=2)), {})
    spend.sent(turn("refused").plan.target)
    spend.heard(turn("n", usage=Usage(1, 1, 2)), {})
    spend.settle()
    (spent,) = admitted.settled
    assert [(each.model, each.input_tokens, each.cached_tokens, each.output_tokens) for each in spent] == [
        *(("m", 30, 6, 15), ("refused", 0, 0, 0), ("n", 1, 0, 1))
    ]
    assert not any(each.estimated for each in spent)


async def test_where_nobody_tells_it_is_estimated_and_marked() -> None:
    admitted = Admitted()
    spend = await entered(admitted)
    body = {"messages": [{"role": "user", "content": "a word " * 400}]}
    spend.heard(turn(said="x" * 401), body)
    spend.settle()
    ((spent,),) = admitted.settled
    assert spent.estimated
    assert spent.output_tokens == 101
    assert 400 < spent.input_tokens < 2000


def test_a_large_body_is_estimated_by_its_size_alone() -> None:
    assert count_input(turn(size=4_000_000).plan, {"messages": "never read"}) == 1_000_000


async def test_ours_win_over_what_the_provider_says_of_its_limits() -> None:
    theirs = {"x-ratelimit-limit-requests": "10000", "x-ratelimit-limit-tokens": "7"}
    spend = await entered(Admitted())
    assert spend.with_limits(theirs) == {"x-ratelimit-limit-requests": "5", "x-ratelimit-limit-tokens": "7"}
    assert Spend().with_limits(theirs) is theirs


@pytest.mark.parametrize("generates", [True, False])
async def test_a_refusal_is_told_and_what_asks_nobody_is_not_asked_for(generates: bool) -> None:
    async def gate(plan: Any) -> Any:
        raise RequestRefused("enough")

    spend, plan = Spend(gate), turn().plan
    plan.generates = generates
    refusal = await spend.enter(plan)
    assert (str(refusal) == "enough") is generates
    spend.settle()
