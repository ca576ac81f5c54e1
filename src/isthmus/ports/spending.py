"""What was used and what it cost, in sums by day: what budgets are held against, and what bills are made of.

Money is counted in whole nano-dollars, so that sums are exact in whatever order they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import msgspec

NANO: Final = 1_000_000_000
USES_AT_ONCE: Final = 10_000
SETTLED_KEPT: Final = 86_400.0
"""Seconds for which it is remembered that a run was settled."""
Column = Literal["day", "owner", "key", "team", "provider", "model"]
COLUMNS: Final[tuple[Column, ...]] = ("day", "owner", "key", "team", "provider", "model")
"""What sums can be told apart by."""
Row = tuple[str, str, str, str, str, str]
"""One value for each of these."""


class Use(msgspec.Struct, frozen=True):
    """What one run used of one model; also a sum of such for one day."""

    day: str
    """`2026-11-17`, of UTC."""
    owner: str
    key: str
    """The id of the key; empty: none was needed."""
    team: str
    provider: str
    model: str
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    """Of the input."""
    output_tokens: int = 0
    nanos: int = 0
    """What it cost; 0 where nobody knows a price."""
    unpriced: int = 0
    """Requests among them of which nobody knows the price."""

    @property
    def row(self) -> Row:
        """What it is a sum for."""
        return (self.day, self.owner, self.key, self.team, self.provider, self.model)

    def plus(self, other: Use) -> Use:
        """Both together, for what this one is for."""
        return Use(
            *self.row,
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.nanos + other.nanos,
            self.unpriced + other.unpriced,
        )


@dataclass(frozen=True, slots=True)
class Hold:
    """Money that is set aside for a run, of one purse."""

    purse: str
    """`key:ID` or `team:NAME`."""
    since: str
    """The first day that the budget is for."""
    nanos: int
    most: int
    """The budget: with what was used and what is set aside for others it must hold."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The purse that has not enough, and how it stands."""

    hold: Hold
    used: int
    held: int


def sum_up(sums: dict[Row, Use], uses: Iterable[Use]) -> None:
    """Add these to the sums."""
    for use in uses:
        row = use.row
        known = sums.get(row)
        sums[row] = use if known is None else known.plus(use)


class Spending(Protocol):
    async def hold(self, id: str, holds: Sequence[Hold], *, seconds: float) -> Refusal | None:
        """Set money aside in each of these purses, or in none: the check and the change are one step.

        Several holds may be of one purse, for its day and its month: they are one sum of money, of which the largest
        counts. What was held under this id before is held no longer, if the new one can be. What nobody settles is
        free again after `seconds`, by the store's clock: its process has died.
        """

    async def settle(self, id: str, uses: Sequence[Use]) -> None:
        """Write down what was used and free what was set aside under this id, if anything was, in one step. What was
        used counts also if that is more than was set aside, and if the time of the hold is over. A second time within
        a day, the same id changes nothing."""

    async def note_uses(self, uses: Sequence[Use]) -> None:
        """The same for runs of purses without a budget, many of them together."""

    async def uses(
        self,
        *,
        since: str,
        until: str,
        owner: str | None = None,
        key: str | None = None,
        team: str | None = None,
        by: Sequence[Column] = ("day", "key", "provider", "model"),
        most: int = USES_AT_ONCE,
    ) -> list[Use]:
        """Sums from `since` to `until`, both included, the oldest day first; what is not in `by` is empty."""

    async def held(self, purse: str) -> int:
        """What is set aside in a purse now."""

    async def prune_uses(self, *, before: str) -> int:
        """Forget sums of earlier days; how many rows there were."""
