"""New attempts at one provider, before it has accepted: which failures are worth one stands in `errors.FAILURES`.

The provider's own `Retry-After` comes first. A short one is waited for, once; a longer one is our client's to wait for,
with the header that says so: a client that waits itself, and asks again itself, must not find its waits multiplied.
Nothing here knows of deadlines: whoever waits for the answer may cancel at any time. Once the provider has accepted, no
attempt is repeated.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, cast

from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.log import tell
from isthmus.ports import OURS, Again, Backend, Behalf, Drawer, Embedder, limits_of, trail_of
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:  # loaded when the first vectors, or images, are asked for
    from isthmus.bridge.embeddings.answer import Embedded
    from isthmus.bridge.embeddings.plan import EmbeddingPlan
    from isthmus.bridge.images.answer import Drawn, Partial
    from isthmus.bridge.images.plan import ImagePlan

log = logging.getLogger("isthmus.upstream")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RetryRule:
    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_told: float = 2.0
    """The longest `Retry-After` that is waited for, once; beyond it the failure is passed on, with its header."""


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

    def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        return _Sending(self, plan, body, behalf)

    async def ready(self) -> str | None:
        return await self._inner.ready()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def embed(self, plan: EmbeddingPlan, trail: list[Again] | None = None, behalf: Behalf = OURS) -> Embedded:
        """Of an inner one that can."""
        trail = [] if trail is None else trail
        inner = cast(Embedder, self._inner)
        return await self._again(plan.target.provider, lambda: inner.embed(plan, trail, behalf), trail)

    async def draw(
        self,
        plan: ImagePlan,
        tell: Callable[[Partial], None],
        trail: list[Again] | None = None,
        behalf: Behalf = OURS,
    ) -> Drawn:
        """Likewise."""
        trail = [] if trail is None else trail
        inner = cast(Drawer, self._inner)
        return await self._again(plan.target.provider, lambda: inner.draw(plan, tell, trail, behalf), trail)

    def open(self, plan: Plan, body: JsonObject, trail: list[Again], behalf: Behalf = OURS) -> Awaitable[_Opened]:
        """The first attempt that is accepted: what it answers, and what ends it."""

        async def attempt() -> _Opened:
            sending = self._inner.send(plan, body, behalf)
            try:
                return sending, await sending.__aenter__()
            finally:
                trail.extend(trail_of(sending))

        return self._again(plan.target.provider, attempt, trail)

    async def _again(self, provider: str, once: Callable[[], Awaitable[_T]], trail: list[Again]) -> _T:
        attempt, bridged = 0, False
        while True:
            try:
                return await once()
            except UpstreamFailed as failure:
                wait = self._wait(failure, attempt, bridged)
                if wait is None:
                    raise
                attempt += 1
                bridged = bridged or failure.retry_after is not None
                tell(
                    log,
                    "warning",
                    "upstream.retry",
                    provider=provider,
                    attempt=attempt,
                    wait=wait,
                    reason=str(failure),
                )
                trail.append(Again(failure, wait))
                await self._sleep(wait)

    def _wait(self, failure: UpstreamFailed, attempt: int, bridged: bool) -> float | None:
        """Seconds until the next attempt; `None`: there is none. `bridged`: a told wait was waited for already."""
        rule = self._rule
        if attempt >= rule.retries or not failure.retryable or failure.metadata.get("spent"):
            return None
        if failure.retry_after is not None:
            return None if bridged or failure.retry_after > rule.longest_told else failure.retry_after
        return min(rule.first_wait * 2.0**attempt, rule.longest_wait) * (0.5 + self._jitter() / 2)


_Opened = tuple[AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]], AsyncIterator[Sequence[Delta]]]


class _Sending:
    """One request and its answer. Written out: a generator and a stack cost as much again as the rest of this file."""

    __slots__ = ("_backend", "_behalf", "_body", "_plan", "_sending", "trail")

    def __init__(self, backend: RetryingBackend, plan: Plan, body: JsonObject, behalf: Behalf) -> None:
        self._backend = backend
        self._plan = plan
        self._body = body
        self._behalf = behalf
        self.trail: list[Again] = []

    @property
    def limits(self) -> Mapping[str, str]:
        return limits_of(self._sending)

    async def __aenter__(self) -> AsyncIterator[Sequence[Delta]]:
        self._sending, answer = await self._backend.open(self._plan, self._body, self.trail, self._behalf)
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._sending.__aexit__(kind, error, trace)
