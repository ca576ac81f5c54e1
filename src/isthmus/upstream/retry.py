"""New attempts at one provider, before it has accepted: with jitter, and the provider's own `Retry-After` first.

Nothing here knows of deadlines: whoever waits for the answer may cancel at any time, and a wait that
would be longer than is sensible is not begun. Once the provider has accepted, no attempt is repeated.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.log import tell
from isthmus.ports import Backend
from isthmus.protocol.json import JsonObject

log = logging.getLogger("isthmus.upstream")


@dataclass(frozen=True, slots=True)
class RetryRule:
    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_told: float = 60.0
    """The longest `Retry-After` that is waited for; beyond it the failure is passed on, with its header."""


class RetryingBackend:
    """Another backend, asked again when it fails in passing."""

    def __init__(
        self,
        inner: Backend,
        rule: RetryRule = RetryRule(),  # noqa: B008  # frozen
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._inner = inner
        self._rule = rule
        self._sleep = sleep
        self._jitter = jitter

    @asynccontextmanager
    async def send(self, plan: Plan, body: JsonObject) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        async with AsyncExitStack() as stack:
            yield await self._open(plan, body, stack)

    async def ready(self) -> str | None:
        return await self._inner.ready()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _open(self, plan: Plan, body: JsonObject, stack: AsyncExitStack) -> AsyncIterator[Sequence[Delta]]:
        attempt = 0
        while True:
            try:
                return await stack.enter_async_context(self._inner.send(plan, body))
            except UpstreamFailed as failure:
                wait = self._wait(failure, attempt)
                if wait is None:
                    raise
                attempt += 1
                tell(
                    log,
                    "warning",
                    "upstream.retry",
                    provider=plan.target.provider,
                    attempt=attempt,
                    wait=wait,
                    reason=str(failure),
                )
                await self._sleep(wait)

    def _wait(self, failure: UpstreamFailed, attempt: int) -> float | None:
        """Seconds until the next attempt; `None`: there is none."""
        rule = self._rule
        if attempt >= rule.retries or not failure.retryable:
            return None
        if failure.code == "upstream_timeout" and failure.status is None:
            return None  # the whole patience is spent already
        if failure.metadata.get("elsewhere"):
            return 0.0  # another key or place is free: no need to wait for this one
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= rule.longest_told else None
        return min(rule.first_wait * 2.0**attempt, rule.longest_wait) * (0.5 + self._jitter() / 2)
