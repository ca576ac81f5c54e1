"""A rate limit that never grants more than it should, and serves whoever came first.

A bucket that fills continuously, behind a lock that is fair: waiting happens inside it, so that the order of asking is
the order of going, and one who gives up while waiting takes nothing along.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RateLimit:
    per_second: float
    burst: int = 1
    """Requests that may go at once after a pause."""

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("a rate limit needs `per_second` above 0 and a `burst` of at least 1")


class Limiter:
    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._tokens = float(limit.burst)
        self._at: float | None = None
        self._turnstile = asyncio.Lock()

    async def take(self) -> None:
        """Wait for one's turn."""
        async with self._turnstile:
            self._fill()
            while self._tokens < 1.0 - 1e-9:
                await asyncio.sleep((1.0 - self._tokens) / self._limit.per_second)
                self._fill()
            self._tokens -= 1.0

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        passed = 0.0 if self._at is None else now - self._at
        self._at = now
        self._tokens = min(float(self._limit.burst), self._tokens + passed * self._limit.per_second)
