"""Several keys or places for one provider: used in turn, the sick ones left out until they had time to recover.

In: a request. Out: the first answer that one of them gives. Where another may do better, it is asked at once, within
the same request, whatever `retries` says; when that is, and what makes a place sick, stands in `errors.FAILURES`. Only
when all have failed is a failure passed on. A conversation with a `prompt_cache_key` stays at one place, so that the
provider's prompt cache is warm, and so does a turn whose client shows where it began (`x-codex-turn-state`).
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, cast

from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.ports import NOWHERE, OURS, TURN, Again, Backend, Behalf, Drawer, Embedder, limits_of
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:  # loaded when the first vectors, or images, are asked for
    from isthmus.bridge.embeddings.answer import Embedded
    from isthmus.bridge.embeddings.plan import EmbeddingPlan
    from isthmus.bridge.images.answer import Drawn, Partial
    from isthmus.bridge.images.plan import ImagePlan

log = logging.getLogger("isthmus.upstream")

_T = TypeVar("_T")
_Opened = tuple[AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]], AsyncIterator[Sequence[Delta]]]

FIRST_REST: Final = 5.0
"""Seconds that a sick place is left out; doubled each time it fails again."""
LONGEST_REST: Final = 300.0
REFUSED_REST: Final = 600.0
"""Seconds that a refused key, or one without quota, is left out: somebody has to act first, and that takes minutes."""


class Place(Backend, Protocol):
    """One key at one address."""

    @property
    def queue(self) -> int:
        """How far from the front of its queue for a connection one more request would stand; 0: it need not wait."""


class _Member:
    __slots__ = ("backend", "failures", "reason", "until")

    def __init__(self, backend: Place) -> None:
        self.backend = backend
        self.failures = 0
        self.until = 0.0
        self.reason = ""


class PooledBackend:
    """One backend made of several."""

    def __init__(self, backends: Sequence[Place], *, now: Callable[[], float] | None = None) -> None:
        """`now`: the running loop's clock, where none is given."""
        self._members = [_Member(backend) for backend in backends]
        self._clock = now
        self._turn = 0

    def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        return _Sending(self, plan, body, behalf)

    async def embed(self, plan: EmbeddingPlan, trail: list[Again] | None = None, behalf: Behalf = OURS) -> Embedded:
        """Of places that can."""
        trail = [] if trail is None else trail

        def ask(place: Place) -> Awaitable[Embedded]:
            return cast(Embedder, place).embed(plan, None, behalf)

        return await self._first(plan.target.provider, None, ask, trail)

    async def draw(
        self,
        plan: ImagePlan,
        tell: Callable[[Partial], None],
        trail: list[Again] | None = None,
        behalf: Behalf = OURS,
    ) -> Drawn:
        """Likewise."""
        trail = [] if trail is None else trail

        def ask(place: Place) -> Awaitable[Drawn]:
            return cast(Drawer, place).draw(plan, tell, trail, behalf)

        return await self._first(plan.target.provider, None, ask, trail)

    async def ready(self) -> str | None:
        now = self._now()
        well = [member for member in self._members if member.until <= now]
        if not well:
            return f"all {len(self._members)} places failed lately: {self._members[0].reason}"
        words = await asyncio.gather(*(member.backend.ready() for member in well))
        return None if None in words else f"no place can be used: {words[0]}"

    async def aclose(self) -> None:
        for member in self._members:
            await member.backend.aclose()

    async def open(self, plan: Plan, body: JsonObject, trail: list[Again], behalf: Behalf = OURS) -> _Opened:
        """The place that accepts: what it answers, and what ends it."""

        async def ask(place: Place) -> _Opened:
            sending = place.send(plan, body, behalf)
            return sending, await sending.__aenter__()

        return await self._first(plan.target.provider, plan.echo.get("prompt_cache_key"), ask, trail)

    async def _first(
        self, provider: str, sticky: str | None, ask: Callable[[Place], Awaitable[_T]], trail: list[Again]
    ) -> _T:
        failures: list[UpstreamFailed] = []
        turn = TURN.get()
        for member in self._candidates(sticky, NOWHERE if turn is None else turn.place_at(provider)):
            if failures:
                trail.append(Again(failures[-1], elsewhere=True))
            try:
                answer = await ask(member.backend)
            except UpstreamFailed as failure:
                self._eject(member, failure)
                if not failure.meaning.elsewhere or failure.metadata.get("spent"):
                    raise
                failures.append(failure)
                log.warning("upstream.elsewhere provider=%s reason=%r", provider, str(failure))
                continue
            member.failures, member.until, member.reason = 0, 0.0, ""
            if turn is not None:
                turn.answered_at(self._members.index(member))
            return answer
        # The one that is over first: what may pass before what is final, and a short wait before a long one.
        raise min(failures, key=lambda failure: (not failure.retryable, failure.retry_after or 0.0))

    def _candidates(self, sticky: str | None, place: int = NOWHERE) -> Iterator[_Member]:
        """The healthy ones in turn, those with the longer queue last; where all are sick, the one due first. `place`:
        where the turn is already, which comes before all others."""
        count = len(self._members)
        start = zlib.crc32(sticky.encode()) if sticky else self._turn
        if not sticky:
            self._turn += 1
        order = [self._members[(start + step) % count] for step in range(count)]
        order.sort(key=lambda member: member.backend.queue)
        if 0 <= place < count:
            order.sort(key=lambda member: member is not self._members[place])
        if all(member.until > self._now() for member in order):
            yield min(order, key=lambda member: member.until)
            return
        yield from (member for member in order if member.until <= self._now())

    def _eject(self, member: _Member, failure: UpstreamFailed) -> None:
        meaning = failure.meaning
        if not meaning.eject:
            return
        member.failures += 1
        member.reason = failure.message
        rest = REFUSED_REST if meaning.final else min(FIRST_REST * 2.0 ** (member.failures - 1), LONGEST_REST)
        member.until = self._now() + max(rest, failure.retry_after or 0.0)

    def _now(self) -> float:
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()


class _Sending:
    """One request and its answer."""

    __slots__ = ("_behalf", "_body", "_plan", "_pool", "_sending", "trail")

    def __init__(self, pool: PooledBackend, plan: Plan, body: JsonObject, behalf: Behalf) -> None:
        self._pool = pool
        self._plan = plan
        self._body = body
        self._behalf = behalf
        self.trail: list[Again] = []

    @property
    def limits(self) -> Mapping[str, str]:
        return limits_of(self._sending)

    async def __aenter__(self) -> AsyncIterator[Sequence[Delta]]:
        self._sending, answer = await self._pool.open(self._plan, self._body, self.trail, self._behalf)
        return answer

    async def __aexit__(self, *_: object) -> None:
        await self._sending.__aexit__(None, None, None)
