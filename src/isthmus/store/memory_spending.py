"""What was used, and the money that is set aside, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from isthmus.ports.spending import COLUMNS, SETTLED_KEPT, USES_AT_ONCE, Column, Hold, Refusal, Row, Use, sum_up

MAX_USES: Final = 100_000
"""Sums that are kept; beyond that those of the oldest days go: memory is no place for more."""


class MemorySpending:
    """`ports.Spending`, for the store to have."""

    _clock: Callable[[], float]

    def __init__(self) -> None:
        super().__init__()
        self._uses: dict[Row, Use] = {}
        self._holds: dict[str, dict[str, tuple[int, float]]] = {}
        """By purse, then by id: so much, until then."""
        self._settled: dict[str, float] = {}
        """The oldest first."""

    async def hold(self, id: str, holds: Sequence[Hold], *, seconds: float) -> Refusal | None:
        for hold in holds:
            used, held = self._spent(hold.purse, hold.since), self._set_aside(hold.purse, without=id)
            if used + held + hold.nanos > hold.most:
                return Refusal(hold, used, held)
        self._free_hold(id)
        until = self._clock() + seconds
        for hold in holds:
            purse = self._holds.setdefault(hold.purse, {})
            purse[id] = max(hold.nanos, purse.get(id, (0, 0.0))[0]), until
        return None

    async def settle(self, id: str, uses: Sequence[Use]) -> None:
        now = self._clock()
        while self._settled and next(iter(self._settled.values())) <= now - SETTLED_KEPT:
            del self._settled[next(iter(self._settled))]
        if id in self._settled:
            return
        self._settled[id] = now
        self._free_hold(id)
        self._add_uses(uses)

    async def note_uses(self, uses: Sequence[Use]) -> None:
        self._add_uses(uses)

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
        asked = {"owner": owner, "key": key, "team": team}
        sums: dict[Row, Use] = {}
        for use in self._uses.values():
            if since <= use.day <= until and all(want in (None, getattr(use, name)) for name, want in asked.items()):
                hidden: dict[str, Any] = {name: "" for name in COLUMNS if name not in by}
                sum_up(sums, [replace(use, **hidden)])
        return [sums[row] for row in sorted(sums)[:most]]

    async def held(self, purse: str) -> int:
        return self._set_aside(purse)

    async def prune_uses(self, *, before: str) -> int:
        old = [row for row in self._uses if row[0] < before]
        for row in old:
            del self._uses[row]
        return len(old)

    def _add_uses(self, uses: Iterable[Use]) -> None:
        sum_up(self._uses, uses)
        if len(self._uses) > MAX_USES:
            for row in sorted(self._uses)[: len(self._uses) - MAX_USES]:
                del self._uses[row]

    def _spent(self, purse: str, since: str) -> int:
        kind, _, name = purse.partition(":")
        mine = (use for use in self._uses.values() if (use.team if kind == "team" else use.key) == name)
        return sum(use.nanos for use in mine if use.day >= since)

    def _set_aside(self, purse: str, without: str = "") -> int:
        now, holds = self._clock(), self._holds.get(purse, {})
        for id in [id for id, (_, until) in holds.items() if until <= now]:
            del holds[id]
        return sum(nanos for id, (nanos, _) in holds.items() if id != without)

    def _free_hold(self, id: str) -> None:
        for purse in [purse for purse, holds in self._holds.items() if holds.pop(id, None) and not holds]:
            del self._holds[purse]
