"""The gate: what it lets through, what it gives back, and what it notes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.access.counters import CountersHere
from isthmus.access.gate import Gate, GateSettings
from isthmus.access.ledger import Ledger
from isthmus.access.limiter import Limiter
from isthmus.access.rules import Rules, Team
from isthmus.bridge.capabilities import Cost
from isthmus.errors import RequestRefused, StoreUnavailable
from isthmus.ports.admission import Payer, Spent, Wanted
from isthmus.ports.keys import Budget, Rates
from isthmus.ports.spending import NANO, Use
from isthmus.store.memory import MemoryStore

COST = Cost(input=1.0, output=1.0)
"""A dollar for a million tokens: a thousand nano-dollars for one."""
DAY = "2026-11-17"
NOON = 1_794_916_800.0
ANN = Payer("key_a", "key_a")


def wanted(tokens: int = 10, output: int | None = 10, cost: Cost | None = COST, **more: Any) -> Wanted:
    return Wanted("m", "p", "m", cost, lambda: tokens, output, **more)


def spent(given: int = 10, made: int = 10, cost: Cost | None = COST) -> Spent:
    return Spent("p", "m", cost, given, 0, made)


class House:
    def __init__(self, *, store: MemoryStore | None = None, **settings: Any) -> None:
        self.store = store or MemoryStore()
        self.opened = 0
        numbers = iter(range(10_000))
        self.gate = Gate(
            Ledger(self.store),
            GateSettings(**settings),
            limiter=self._open,
            now=lambda: NOON,
            new_id=lambda prefix: f"{prefix}_{next(numbers)}",
        )

    def _open(self) -> Limiter:
        self.opened += 1
        return Limiter(CountersHere())

    async def used(self) -> tuple[int, int, int]:
        await self.gate.ledger.flush()
        found = await self.store.uses(since=DAY, until=DAY, by=())
        total = found[0] if found else Use(DAY, "", "", "", "", "")
        return total.requests, total.input_tokens + total.output_tokens, total.nanos


async def test_without_limits_it_only_notes_what_was_used() -> None:
    house = House()
    ticket = await house.gate.admit(ANN, wanted(output=None))
    assert ticket.headers == {}
    ticket.settle([spent(7, 3)])
    ticket.settle([spent(7, 3)])
    assert await house.used() == (1, 10, 10_000)
    assert house.opened == 0, "what limits need is not even loaded"
    await house.gate.aclose()


async def test_what_was_never_sent_counts_nowhere() -> None:
    house = House(rules=Rules(Rates(requests_per_minute=1, tokens_per_minute=100)))
    for _ in range(5):
        (await house.gate.admit(ANN, wanted())).settle([])
    assert await house.used() == (0, 0, 0)
    await house.gate.aclose()


async def test_a_budget_is_held_and_settled_with_what_was_used() -> None:
    house = House()
    ann = Payer("key_a", "key_a", budget=Budget(day=100_000 / NANO))
    ticket = await house.gate.admit(ann, wanted(30, 50))
    assert await house.store.held("key:key_a") == 80_000
    with pytest.raises(RequestRefused, match="daily budget"):
        await house.gate.admit(ann, wanted(10, 11))
    ticket.settle([spent(20, 5)])
    assert await house.used() == (1, 25, 25_000)
    assert await house.store.held("key:key_a") == 0
    (await house.gate.admit(ann, wanted(75, 0))).settle([])
    assert house.gate.refused == {"budget": 1}
    await house.gate.aclose()


async def test_what_a_budget_refuses_takes_nothing_of_the_limits() -> None:
    house = House(rules=Rules(Rates(requests_per_minute=2, concurrent_requests=1)))
    ann = Payer("key_a", "key_a", budget=Budget(day=1000 / NANO))
    for _ in range(5):
        with pytest.raises(RequestRefused, match="budget"):
            await house.gate.admit(ann, wanted(10, 10))
    (await house.gate.admit(ann, wanted(1, 0))).settle([])
    await house.gate.aclose()


async def test_a_team_has_one_budget_and_one_limit_for_all_its_keys() -> None:
    team = Team(Rates(concurrent_requests=2), Budget(month=100_000 / NANO))
    house = House(rules=Rules(teams={"t": team}))
    keys = [Payer("team:t", f"key_{name}", "t") for name in "abc"]
    tickets = [await house.gate.admit(key, wanted(40, 0)) for key in keys[:2]]
    with pytest.raises(RequestRefused, match="team `t` may have 2 requests at the same time"):
        await house.gate.admit(keys[2], wanted(1, 0))
    tickets[0].settle([spent(40, 0)])
    with pytest.raises(RequestRefused, match="team `t` has a monthly budget"):
        await house.gate.admit(keys[2], wanted(40, 0))
    await house.gate.aclose()


async def test_overshoot_is_no_more_than_what_runs() -> None:
    """64 at once, each uses three times what was set aside for it."""
    house = House()
    ann = Payer("key_a", "key_a", budget=Budget(day=1_000_000 / NANO))
    served = 0

    async def client() -> None:
        nonlocal served
        while True:
            try:
                ticket = await house.gate.admit(ann, wanted(10, 10))
            except RequestRefused:
                return
            served += 1
            await asyncio.sleep(0)
            ticket.settle([spent(30, 30)])

    await asyncio.gather(*(client() for _ in range(64)))
    _, _, nanos = await house.used()
    assert nanos == served * 60_000
    assert 1_000_000 - 20_000 < nanos <= 1_000_000 + 64 * 60_000
    await house.gate.aclose()


async def test_a_request_that_does_not_say_how_much_it_makes_is_assumed_to_make_so_much() -> None:
    house = House(assumed_output=500)
    ann = Payer("key_a", "key_a", budget=Budget(day=1.0))
    await house.gate.admit(ann, wanted(10, None))
    assert await house.store.held("key:key_a") == 510_000
    await house.gate.aclose()


async def test_a_model_without_a_price_costs_nothing_or_is_refused() -> None:
    ann = Payer("key_a", "key_a", budget=Budget(day=1.0))
    house = House()
    (await house.gate.admit(ann, wanted(cost=None))).settle([spent(cost=None)])
    await house.gate.ledger.flush()
    (found,) = await house.store.uses(since=DAY, until=DAY)
    assert (found.nanos, found.unpriced, found.input_tokens) == (0, 1, 10)
    await house.gate.aclose()
    strict = House(unpriced="refuse")
    with pytest.raises(RequestRefused, match="nobody knows what `p/m` costs") as caught:
        await strict.gate.admit(ann, wanted(cost=None))
    assert (caught.value.code, caught.value.meaning.status) == ("model_unpriced", 403)
    (await strict.gate.admit(ANN, wanted(cost=None))).settle([])
    await strict.gate.aclose()


async def test_what_asks_no_model_is_counted_as_a_request_and_costs_nothing() -> None:
    house = House(rules=Rules(Rates(requests_per_minute=2, tokens_per_minute=1)))
    ann = Payer("key_a", "key_a", budget=Budget(day=1 / NANO))
    for _ in range(2):
        (await house.gate.admit(ann, Wanted(""))).settle([Spent("", "")])
    with pytest.raises(RequestRefused, match="2 requests per minute"):
        await house.gate.admit(ann, Wanted(""))
    await house.gate.aclose()


async def test_a_store_that_is_away_opens_no_budget() -> None:
    class Away(MemoryStore):
        async def hold(self, *given: Any, **named: Any) -> None:
            raise StoreUnavailable("gone")

    house = House(store=Away(), rules=Rules(Rates(concurrent_requests=1)))
    ann = Payer("key_a", "key_a", budget=Budget(day=1.0))
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await house.gate.admit(ann, wanted())
    await house.gate.aclose()


async def test_whoever_asks_at_the_end_of_an_answer_finds_its_place_free() -> None:
    house = House(rules=Rules(Rates(concurrent_requests=1)))
    for _ in range(50):
        (await house.gate.admit(ANN, wanted())).settle([spent()])
    await house.gate.aclose()


async def test_it_says_what_it_refused() -> None:
    house = House(rules=Rules(Rates(requests_per_minute=1)))
    (await house.gate.admit(ANN, wanted())).settle([spent()])
    for _ in range(3):
        with pytest.raises(RequestRefused):
            await house.gate.admit(ANN, wanted())
    assert ("isthmus_limit_refusals_total", ("rate",), 3) in list(house.gate.look())
    await house.gate.aclose()
