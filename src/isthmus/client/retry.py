"""When to ask a provider again, and after how long: full jitter, the provider's own wish first."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from isthmus.errors import UpstreamFailed


@dataclass(frozen=True, slots=True)
class Retry:
    """New attempts are made only for failures that may pass, and only before the model has said anything."""

    attempts: int = 3
    """Requests in all, the first included."""
    base: float = 0.5
    cap: float = 20.0
    """Longest wait by our own choice, in seconds."""
    longest_wish: float = 120.0
    """A provider that asks for more patience than this gets none."""
    chance: Callable[[], float] = field(default=random.random, repr=False)

    def wait(self, failure: UpstreamFailed, attempt: int, left: float | None) -> float | None:
        """Seconds until the next attempt; `None` when there should be none. `left` is the time until the deadline."""
        if attempt >= self.attempts or not failure.retryable:
            return None
        if failure.retry_after is not None:
            if failure.retry_after > self.longest_wish:
                return None
            wait = failure.retry_after
        else:
            wait = min(self.cap, self.base * 2 ** (attempt - 1)) * self.chance()
        return None if left is not None and wait >= left else wait


NO_RETRY = Retry(attempts=1)
