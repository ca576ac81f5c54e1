"""Money: what a budget must have left before something is asked, and what came of it.

In: who pays, and about how many tokens it will take. Out: holds for the store, or a 429 that says when the budget
begins anew. Days and months are those of UTC. Pure, but for the store that is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import ceil
from typing import Final

from isthmus.access.rules import Team
from isthmus.bridge.capabilities import Cost
from isthmus.errors import RequestRefused
from isthmus.ports.admission import Payer, Spent
from isthmus.ports.keys import NO_BUDGET, Budget
from isthmus.ports.spending import NANO, Hold, Refusal, Use

_DAY: Final = 86_400
"""Seconds."""
FAR_MORE = 2**62
"""Nano-dollars: more than any budget."""


def purses_of(payer: Payer, team: Team | None) -> list[tuple[str, Budget]]:
    """Those that must have enough; none where nothing is limited."""
    purses = []
    if payer.key and payer.budget != NO_BUDGET:
        purses.append((f"key:{payer.key}", payer.budget))
    if team is not None and team.budget != NO_BUDGET:
        purses.append((f"team:{payer.team}", team.budget))
    return purses


def holds_for(purses: Iterable[tuple[str, Budget]], nanos: int, at: float) -> list[Hold]:
    day = day_of(at)
    holds = []
    for purse, budget in purses:
        for since, dollars in ((day, budget.day), (day[:8] + "01", budget.month)):
            if dollars:
                holds.append(Hold(purse, since, nanos, min(round(min(dollars, FAR_MORE / NANO) * NANO), FAR_MORE)))
    return holds


def nanos_of(cost: Cost | None, spent: int, made: int, cached: int = 0) -> int | None:
    """What so many tokens cost; `None`: nobody knows the price."""
    price = None if cost is None else cost.price(spent, made, min(cached, spent))
    return None if price is None else ceil(round(price * NANO, 3))  # without the noise of floats


def uses_of(payer: Payer, spent: Sequence[Spent], at: float) -> list[Use]:
    uses = []
    for each in spent:
        if not each.model:
            continue  # it asked no model
        nanos = nanos_of(each.cost, each.input_tokens, each.output_tokens, each.cached_tokens)
        used = each.input_tokens + each.output_tokens > 0
        uses.append(
            Use(
                *(day_of(at), payer.owner, payer.key, payer.team, each.provider, each.model),
                requests=1,
                input_tokens=each.input_tokens,
                cached_tokens=each.cached_tokens,
                output_tokens=each.output_tokens,
                nanos=nanos or 0,
                unpriced=int(used and nanos is None),
            )
        )
    return uses


def spent_budget(refusal: Refusal, purses: Sequence[tuple[str, Budget]], at: float) -> RequestRefused:
    hold = refusal.hold
    kind, _, name = hold.purse.partition(":")
    now = datetime.fromtimestamp(at, UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    # On the first of a month both begin on the same day.
    daily = hold in holds_for([(purse, Budget(day=budget.day)) for purse, budget in purses], hold.nanos, at)
    anew = midnight + timedelta(days=1) if daily else (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
    held = f" and {_dollars(refusal.held)} set aside for what runs" if refusal.held else ""
    return RequestRefused(
        f"{kind} `{name}` has a {'daily' if daily else 'monthly'} budget of {_dollars(hold.most)}: "
        f"{_dollars(refusal.used)} are spent{held}, and this request may cost {_dollars(hold.nanos)}; the budget "
        f"begins anew at {anew:%Y-%m-%dT%H:%MZ}, or ask your operator for more",
        code="insufficient_quota",
        retry_after=(anew - now).total_seconds(),
    )


def day_of(at: float) -> str:
    return _day(int(at // _DAY))


@lru_cache(64)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * _DAY, UTC).strftime("%Y-%m-%d")


def _dollars(nanos: int) -> str:
    dollars = nanos / NANO
    return f"${dollars:,.2f}" if dollars >= 1 or not nanos else f"${dollars:.6f}".rstrip("0").rstrip(".")
