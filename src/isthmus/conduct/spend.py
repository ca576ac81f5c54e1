"""The way of a run past the gate, and what it uses of each model, all askings together: fallbacks, repairs, searches,
rounds of tools, summaries.

An asking that nobody accepted has used nothing. Of one that was accepted, the provider's own figures count; where it
tells none, or was left before it did, the body that was sent and the text that came are estimated, and that is marked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from isthmus.bridge.deltas import Usage
from isthmus.bridge.tokens import likely_tokens
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Plan, Target
from isthmus.errors import IsthmusError
from isthmus.ports.admission import Admitted, Spent
from isthmus.protocol.json import JsonObject

Gate = Callable[[Plan], Awaitable[Admitted]]
"""Lets a run with this plan through, or raises why not."""
_PER_TOKEN: Final = 4
"""Characters of a text that are about a token."""


class Spend:
    __slots__ = ("_admitted", "_by", "_gate")

    def __init__(self, gate: Gate | None = None) -> None:
        self._gate = gate
        self._admitted: Admitted | None = None
        self._by: dict[tuple[str, str], Spent] = {}

    async def enter(self, plan: Plan) -> IsthmusError | None:
        """Pass the gate, or why not. What is only kept asks nobody, and counts nowhere."""
        if self._gate is None or not plan.generates:
            return None
        try:
            self._admitted = await self._gate(plan)
        except IsthmusError as refusal:
            return refusal
        return None

    def with_limits(self, theirs: Mapping[str, str]) -> Mapping[str, str]:
        """What a provider said of its rate limits, and how ours stand: ours win."""
        ours = self._admitted.headers if self._admitted is not None else None
        return {**theirs, **ours} if ours else theirs

    def sent(self, target: Target) -> None:
        """It is asked."""
        key = (target.provider, target.model)
        if key not in self._by:
            self._by[key] = Spent(*key, target.capabilities.cost)

    def heard(self, turn: Turn, body: JsonObject) -> None:
        """An answer is over, or was left."""
        target, usage = turn.plan.target, turn.heard
        if usage is None:
            given, made = count_input(turn.plan, body), -(-len(turn.said) // _PER_TOKEN)
            usage = Usage(given, made, given + made, estimated=True)
        key = (target.provider, target.model)
        spent = self._by.get(key) or Spent(*key, target.capabilities.cost)
        self._by[key] = Spent(  # not `replace`, which takes ten times as long
            *key,
            spent.cost,
            spent.input_tokens + usage.input_tokens,
            spent.cached_tokens + usage.cached_tokens,
            spent.output_tokens + usage.output_tokens,
            spent.estimated or usage.estimated,
        )

    def settle(self) -> None:
        """It is over; of whatever else is said of it, this is the last."""
        if self._admitted is not None:
            self._admitted.settle(list(self._by.values()))


def count_input(plan: Plan, body: JsonObject) -> int:
    """About how many tokens a body sends; of a large one by its size alone, so that nobody waits."""
    return plan.size // _PER_TOKEN if plan.size else likely_tokens(body)
