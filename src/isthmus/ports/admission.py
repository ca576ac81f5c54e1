"""The gate in front of everything that costs: who asks for about how much comes in, a place goes out, and in the end
what was used comes back.

    admit ──▶ (it is sent, perhaps several times, to one model or several) ──▶ settle
      └─ refused: 429, nothing was sent, and nothing is charged
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from isthmus.ports.keys import NO_BUDGET, NO_RATES, Budget, Rates

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.capabilities import Cost


class Payer(msgspec.Struct, frozen=True):
    """Who asks, and so who pays."""

    owner: str
    key: str = ""
    """The id of the key; empty: none was needed."""
    team: str = ""
    rates: Rates = NO_RATES
    """Those of the key itself."""
    budget: Budget = NO_BUDGET


class Wanted(msgspec.Struct, frozen=True):
    """What is about to be asked of a model."""

    name: str
    """The model as its client names it; empty: none is needed, and only requests are counted."""
    provider: str = ""
    model: str = ""
    cost: Cost | None = None
    count: Callable[[], int] = lambda: 0
    """About how many tokens it sends: counted only where somebody wants to know."""
    output: int | None = None
    """The most tokens that it lets the model make; `None`: it does not say."""
    streams: bool = False


class Spent(msgspec.Struct, frozen=True):
    """What was used of one model, all askings together."""

    provider: str
    model: str
    cost: Cost | None = None
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    """Whether the provider did not tell all of it."""


class Admitted(Protocol):
    @property
    def headers(self) -> Mapping[str, str]:
        """How the limits stand that it counts against (`x-ratelimit-…`); empty where there are none."""

    def settle(self, spent: Sequence[Spent]) -> None:
        """It is over: what it took is given back, what it used is noted. Neither waits nor raises; a second time
        changes nothing. Nothing spent, nothing sent: it counts nowhere."""


class Admission(Protocol):
    async def admit(self, payer: Payer, wanted: Wanted) -> Admitted:
        """Raises `RequestRefused` (429) where a limit is met or a budget is spent."""

    async def written(self) -> None:
        """When what was used until now stands in the store, if that takes it."""

    async def aclose(self) -> None:
        """All that was noted is written."""
