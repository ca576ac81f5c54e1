"""Several keys or places for one provider: used in turn, the sick ones left out until they had time to recover.

A conversation with a `prompt_cache_key` stays at one place, so that the provider's prompt cache is warm.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.ports import Backend
from isthmus.protocol.json import JsonObject


class _Member:
    __slots__ = ("backend", "failures", "reason", "until")

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.failures = 0
        self.until = 0.0
        self.reason = ""


class PooledBackend:
    """One backend made of several."""

    def __init__(
        self,
        backends: Sequence[Backend],
        *,
        first_ejection: float = 5.0,
        longest_ejection: float = 300.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = [_Member(backend) for backend in backends]
        self._first = first_ejection
        self._longest = longest_ejection
        self._now = now
        self._turn = 0

    @asynccontextmanager
    async def send(self, plan: Plan, body: JsonObject) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        member = self._choose(plan.echo.get("prompt_cache_key"))
        opened = member.backend.send(plan, body)
        try:
            answer = await opened.__aenter__()
        except UpstreamFailed as failure:
            self._eject(member, failure)
            raise
        member.failures, member.until, member.reason = 0, 0.0, ""
        try:
            yield answer
        finally:
            await opened.__aexit__(None, None, None)

    async def ready(self) -> str | None:
        sick = [member for member in self._members if member.until > self._now()]
        if len(sick) < len(self._members):
            return None
        return f"all {len(sick)} places failed lately: {sick[0].reason}"

    async def aclose(self) -> None:
        for member in self._members:
            await member.backend.aclose()

    def _choose(self, sticky: str | None) -> _Member:
        """The next healthy one; where all are sick, the one that has waited longest."""
        count = len(self._members)
        start = zlib.crc32(sticky.encode()) if sticky else self._turn
        if not sticky:
            self._turn += 1
        order = [self._members[(start + step) % count] for step in range(count)]
        now = self._now()
        healthy = next((member for member in order if member.until <= now), None)
        return healthy or min(order, key=lambda member: member.until)

    def _eject(self, member: _Member, failure: UpstreamFailed) -> None:
        if not failure.meaning.eject:
            return
        member.failures += 1
        member.reason = failure.message
        rest = min(self._first * 2 ** (member.failures - 1), self._longest)
        member.until = self._now() + max(rest, failure.retry_after or 0.0)
        if failure.meaning.elsewhere and any(other.until <= self._now() for other in self._members):
            failure.metadata = {**failure.metadata, "elsewhere": True}
