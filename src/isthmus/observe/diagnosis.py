"""What the cache doctor found: of one turn, and of a whole conversation.

Figures that nobody knows are `None`, never 0: a sum that left them out would be read as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from isthmus.observe.prefix import Section

Verdict = Literal["first", "hit", "missed", "broken", "untold"]
Change = Literal["changed", "added", "removed", "reordered"]


class Break(msgspec.Struct, frozen=True):
    """Where a prompt stops being the one before."""

    path: str
    section: Section
    change: Change
    what: str = ""
    """The role of the message, the name of the tool."""
    before: int = 0
    """Bytes of the part then; 0: there was none."""
    after: int = 0
    why: str = ""
    """What it means, and what helps."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One turn."""

    id: str
    at: float
    provider: str
    model: str
    verdict: Verdict
    against: str | None = None
    """The turn that it is compared with."""
    bytes: int = 0
    """Of its prompt."""
    same_bytes: int = 0
    """Of the turn before, found again at the beginning of this one."""
    earlier_bytes: int = 0
    """Of the turn before, all of it."""
    same_parts: int = 0
    earlier_parts: int = 0
    broken: Break | None = None
    seconds: float | None = None
    """Since the turn before."""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    could_be_cached: int | None = None
    """Tokens of the turn before: what a whole hit would have found."""
    cost: float | None = None
    """Of the input, in US dollars."""
    cost_with_hit: float | None = None
    note: str = ""

    @property
    def kept(self) -> float | None:
        """Which part of the turn before was found again, from 0 to 1."""
        return None if self.against is None else self.same_bytes / (self.earlier_bytes or 1)

    @property
    def lost(self) -> float | None:
        """US dollars that a whole hit would have saved."""
        if self.cost is None or self.cost_with_hit is None:
            return None
        return max(self.cost - self.cost_with_hit, 0.0)


class Examined(msgspec.Struct, frozen=True):
    turns: tuple[Diagnosis, ...]

    @property
    def breaks(self) -> tuple[Diagnosis, ...]:
        return tuple(turn for turn in self.turns if turn.broken is not None)

    @property
    def input_tokens(self) -> int:
        return sum(turn.input_tokens or 0 for turn in self.turns)

    @property
    def cached_tokens(self) -> int:
        return sum(turn.cached_tokens or 0 for turn in self.turns)

    @property
    def cost(self) -> float | None:
        return _sum([turn.cost for turn in self._told])

    @property
    def lost(self) -> float | None:
        """US dollars that whole hits would have saved."""
        return _sum([turn.lost for turn in self._told if turn.against is not None and turn.could_be_cached is not None])

    @property
    def _told(self) -> list[Diagnosis]:
        """Turns whose provider said what they took; one that failed has no price."""
        return [turn for turn in self.turns if turn.input_tokens is not None]

    def to_json(self) -> dict[str, Any]:
        return {
            "turns": [
                {**msgspec.to_builtins(turn), "kept": _rounded(turn.kept), "lost": _rounded(turn.lost)}
                for turn in self.turns
            ],
            "breaks": len(self.breaks),
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "cost": _rounded(self.cost),
            "lost": _rounded(self.lost),
        }


def _sum(amounts: Sequence[float | None]) -> float | None:
    """`None` where one of them is not known: a sum that leaves some out would be read as the whole."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 9)
