"""The log as an observer: failures as they happen, background runs at their end.

What runs in the foreground is told by the server, in the line of its request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from isthmus.log import tell
from isthmus.ports import AttemptFailed, Ended, Fact, FirstToken, Sent

log = logging.getLogger("isthmus.run")

_TOLD: Final = frozenset({Ended, AttemptFailed, Sent, FirstToken})


class LogObserver:
    def ear(self, kind: type[Any]) -> Callable[[Any], None] | None:
        return self.tell if kind in _TOLD else None  # most facts are no news

    def tell(self, fact: Fact) -> None:
        if isinstance(fact, Ended):
            if fact.background:
                failed = fact.outcome in ("failed", "refused")
                facts = {"caller": fact.owner, "ms": round(fact.seconds * 1000, 1), **run_facts(fact)}
                tell(log, "warning" if failed else "info", "background.done", **facts)
        elif isinstance(fact, AttemptFailed):
            told: dict[str, Any] = {"provider": fact.provider, "model": fact.model, "attempt": fact.attempt}
            failure = fact.failure
            tell(log, "warning", "attempt.failed", id=fact.id, **told, code=failure.code, reason=failure.message)
        elif log.isEnabledFor(logging.DEBUG):
            if isinstance(fact, Sent):
                told = {"provider": fact.provider, "model": fact.model, "attempt": fact.attempt}
                tell(log, "debug", "attempt.sent", id=fact.id, **told, key=fact.key or None)
            elif isinstance(fact, FirstToken):
                tell(log, "debug", "attempt.first_token", id=fact.id, ms=round(fact.seconds * 1000, 1))


def run_facts(ended: Ended) -> dict[str, Any]:
    """What a line says of a run."""
    usage = ended.usage or {}
    details = usage.get("input_tokens_details") or {}
    spent, made, cached = usage.get("input_tokens"), usage.get("output_tokens"), details.get("cached_tokens")
    price = ended.cost.price(spent or 0, made or 0, cached or 0) if ended.usage else None
    failure = ended.failure
    return {
        "response": ended.id,
        "model": ended.model,
        "provider": ended.provider,
        "attempts": ended.attempts,
        "outcome": ended.outcome,
        "input_tokens": spent,
        "output_tokens": made,
        "cached_tokens": cached or None,
        "cost": None if price is None else round(price, 6),
        "first_ms": None if ended.first_token is None else round(ended.first_token * 1000, 1),
        "degraded": ended.degraded,
        "ignored": ended.ignored,
        **({} if failure is None else {"code": failure.code, "reason": failure.message}),
    }
