"""What must be left of a budget, what came of it, and when it begins anew."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from isthmus.access.budgets import FAR_MORE, day_of, holds_for, nanos_of, purses_of, spent_budget, uses_of
from isthmus.access.rules import Team
from isthmus.bridge.capabilities import Cost
from isthmus.ports.admission import Payer, Spent
from isthmus.ports.keys import Budget
from isthmus.ports.spending import NANO, Hold, Refusal, Use

COST = Cost(input=2.0, cached=0.5, output=8.0)


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOON = moment("2026-11-17T12:00")


@pytest.mark.parametrize(
    ("payer", "team", "purses"),
    [
        (Payer("local"), None, []),
        (Payer("key_a", "key_a"), Team(), []),
        (Payer("key_a", "key_a", budget=Budget(day=1)), None, ["key:key_a"]),
        (Payer("team:t", "key_a", "t", budget=Budget(month=1)), Team(budget=Budget(day=5)), ["key:key_a", "team:t"]),
    ],
)
def test_a_purse_is_that_of_the_key_and_that_of_its_team(payer: Payer, team: Team | None, purses: list[str]) -> None:
    assert [purse for purse, _ in purses_of(payer, team)] == purses


def test_a_hold_is_for_the_day_and_for_the_month_of_utc() -> None:
    holds = holds_for([("key:a", Budget(day=1.5, month=20)), ("team:t", Budget(month=1e300))], 7, NOON)
    assert holds == [
        Hold("key:a", "2026-11-17", 7, 1_500_000_000),
        Hold("key:a", "2026-11-01", 7, 20 * NANO),
        Hold("team:t", "2026-11-01", 7, FAR_MORE),
    ]
    assert day_of(moment("2026-11-17T23:59:59")) == "2026-11-17"


def test_what_is_used_is_priced_at_its_own_price_and_summed_in_nano_dollars() -> None:
    assert nanos_of(COST, 1_000_000, 500_000, 200_000) == round((0.8 * 2 + 0.2 * 0.5 + 0.5 * 8) * NANO)
    assert nanos_of(COST, 1, 0) == 2000
    assert nanos_of(Cost(), 1, 1) is nanos_of(None, 1, 1) is None
    assert nanos_of(COST, 10, 0, 50) == 5_000, "a provider that says more is cached than was sent"
    spent = [Spent("p", "m", COST, 10, 0, 5), Spent("q", "n", None, 1, 0, 1), Spent("q", "o", None), Spent("", "")]
    assert uses_of(Payer("team:t", "key_a", "t"), spent, NOON) == [
        Use("2026-11-17", "team:t", "key_a", "t", "p", "m", 1, 10, 0, 5, 60_000, 0),
        Use("2026-11-17", "team:t", "key_a", "t", "q", "n", 1, 1, 0, 1, 0, 1),
        Use("2026-11-17", "team:t", "key_a", "t", "q", "o", 1, 0, 0, 0, 0, 0),
    ]


@pytest.mark.parametrize(
    ("budget", "at", "kind", "anew"),
    [
        (Budget(day=1), "2026-11-17T12:00", "daily", "2026-11-18T00:00Z"),
        (Budget(month=1), "2026-11-17T12:00", "monthly", "2026-12-01T00:00Z"),
        (Budget(month=1), "2026-12-31T23:00", "monthly", "2027-01-01T00:00Z"),
        (Budget(month=1), "2026-11-01T12:00", "monthly", "2026-12-01T00:00Z"),
        (Budget(day=1), "2026-11-01T12:00", "daily", "2026-11-02T00:00Z"),
        (Budget(day=1), "2028-02-29T00:00", "daily", "2028-03-01T00:00Z"),
    ],
)
def test_a_refusal_says_how_it_stands_and_when_it_begins_anew(budget: Budget, at: str, kind: str, anew: str) -> None:
    purses = [("key:key_a", budget)]
    (hold,) = holds_for(purses, 20_000_000, moment(at))
    error = spent_budget(Refusal(hold, 950_000_000, 40_000_000), purses, moment(at))
    assert error.code == "insufficient_quota"
    assert error.meaning.status == 429
    assert error.message == (
        f"key `key_a` has a {kind} budget of $1.00: $0.95 are spent and $0.04 set aside for what runs, and this "
        f"request may cost $0.02; the budget begins anew at {anew}, or ask your operator for more"
    )
    assert error.retry_after is not None
    assert error.retry_after > 0
