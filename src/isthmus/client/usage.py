"""What a call to a model took: tokens, money, attempts; summed over a run, and listed per turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from isthmus.bridge.capabilities import Cost


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    """US dollars by the provider's public prices; `None` where a price is not known."""
    requests: int = 0
    """Requests sent to the provider, those included that had to be tried again."""
    turns: tuple[Usage, ...] = ()
    """The same for each model call."""

    def plus(self, turn: Usage) -> Usage:
        """The sum, with `turn` added to the list."""
        first = not self.turns
        known = turn.cost is not None and (first or self.cost is not None)
        return Usage(
            self.input_tokens + turn.input_tokens,
            self.output_tokens + turn.output_tokens,
            self.total_tokens + turn.total_tokens,
            self.cached_tokens + turn.cached_tokens,
            self.reasoning_tokens + turn.reasoning_tokens,
            (self.cost or 0.0) + (turn.cost or 0.0) if known else None,
            self.requests + turn.requests,
            (*self.turns, replace(turn, turns=())),
        )


def read_usage(given: Mapping[str, Any] | None, cost: Cost | None, requests: int) -> Usage:
    """The `usage` of a response, priced."""
    if given is None:
        return Usage(requests=requests)
    cached = (given.get("input_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (given.get("output_tokens_details") or {}).get("reasoning_tokens") or 0
    spent, made = given.get("input_tokens") or 0, given.get("output_tokens") or 0
    total = given.get("total_tokens") or spent + made
    price = None if cost is None else cost.price(spent, made, cached)
    return Usage(spent, made, total, cached, reasoning, price, requests)
