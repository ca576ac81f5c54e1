"""The log as an observer: failures as they happen, background runs at their end.

What runs in the foreground is told by the server, in the line of its request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from isthmus.log import tell
from isthmus.ports import AttemptFailed, Ended, Fact, FirstToken, Sent

log = logging.getLogger("isthmus.run")


class LogObserver:
    def __init__(self) -> None:
        self._hear: dict[type[Any], Callable[[Any], None]] = {
            Ended: self._ended,
            AttemptFailed: self._failed,
            Sent: self._sent,
            FirstToken: self._heard,
        }
        """Most facts are no news."""

    def ear(self, kind: type[Any]) -> Callable[[Any], None] | None:
        return self._hear.get(kind)

    def tell(self, fact: Fact) -> None:
        hear = self._hear.get(type(fact))
        if hear is not None:
            hear(fact)

    def _ended(self, fact: Ended) -> None:
        if fact.background:
            failed = fact.outcome in ("failed", "refused")
            facts = {"caller": fact.owner, "ms": round(fact.seconds * 1000, 1), **run_facts(fact)}
            tell(log, "warning" if failed else "info", "background.done", **facts)

    def _failed(self, fact: AttemptFailed) -> None:
        told: dict[str, Any] = {"provider": fact.provider, "model": fact.model, "attempt": fact.attempt}
        failure = fact.failure
        tell(log, "warning", "attempt.failed", id=fact.id, **told, code=failure.code, reason=failure.message)

    def _sent(self, fact: Sent) -> None:
        if log.isEnabledFor(logging.DEBUG):
            told: dict[str, Any] = {"provider": fact.provider, "model": fact.model, "attempt": fact.attempt}
            tell(log, "debug", "attempt.sent", id=fact.id, **told, key=fact.key or None)

    def _heard(self, fact: FirstToken) -> None:
        if log.isEnabledFor(logging.DEBUG):
            tell(log, "debug", "attempt.first_token", id=fact.id, ms=round(fact.seconds * 1000, 1))


def run_facts(ended: Ended) -> dict[str, Any]:
    """What a line says of a run."""
    usage = ended.usage or {}
    details = usage.get("input_tokens_details") or {}
    spent, made, cached = usage.get("input_tokens"), usage.get("output_tokens"), details.get("cached_tokens")
    price = ended.price
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
