"""A place that failed again and again is left alone for a while: whoever asks meanwhile is told so at once.

    closed ──▶ so many failures in a row ──▶ open ──▶ its rest is over: one request tries it ──▶ it works: closed
                                              ▲                                                  │
                                              └────── it fails: twice the rest, up to a bound ◀──┘

What counts as a failure stands in `errors.FAILURES` (`breaks`): what says that it is sick, never what is the caller's,
and not that it asks for patience. Worth knowing: while it is closed, a request pays for two look-ups; whoever tries it
and is called away has learned nothing, and the next one tries.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from isthmus.errors import UpstreamFailed, UpstreamResting
from isthmus.log import tell

log: Final = logging.getLogger("isthmus.upstream")

FAILURES: Final = 10
"""Failures in a row after which a gateway leaves a place alone."""


@dataclass(frozen=True, slots=True)
class BreakerRule:
    failures: int = 0
    """0: it is never left alone."""
    first_rest: float = 5.0
    longest_rest: float = 300.0


NEVER: Final = BreakerRule()


@dataclass(frozen=True, slots=True)
class Rest:
    """A place is left alone."""

    since: float
    """By the clock on the wall."""
    left: float
    """Seconds; 0: the next request tries it."""
    failures: int
    reason: str


class Breaker:
    """Use `asking()` around each request; where nothing is wrong, it is its own context."""

    __slots__ = (
        "_clock",
        "_failures",
        "_name",
        "_provider",
        "_reason",
        "_rests",
        "_rule",
        "_since",
        "_trying",
        "_until",
    )

    def __init__(
        self, provider: str, rule: BreakerRule = NEVER, *, called: str = "", now: Callable[[], float] | None = None
    ) -> None:
        """`called`: in sentences. `now`: the running loop's clock, where none is given."""
        self._provider = provider
        self._name = called or f"provider `{provider}`"
        self._rule = rule
        self._clock = now
        self._failures = 0
        self._rests = 0
        """How often it was left alone since it last worked; 0: it is not."""
        self._since, self._until = 0.0, 0.0
        self._reason = ""
        self._trying = False

    @property
    def rest(self) -> Rest | None:
        if not self._rests:
            return None
        return Rest(self._since, max(self._until - self._now(), 0.0), self._failures, self._reason)

    @property
    def resting(self) -> bool:
        """Whether a request would be refused now."""
        return bool(self._rests) and (self._trying or self._now() < self._until)

    def asking(self) -> AbstractContextManager[None]:
        """Raises `UpstreamResting` where it is left alone, or somebody tries it already."""
        if not self._rests:
            return self
        if self.resting:
            raise self._refusal()
        return _Trial(self)

    def words(self) -> str | None:
        """What keeps it from being asked now; `None`: nothing, for instance because its rest is over."""
        rest = self.rest
        if rest is None or not rest.left:
            return None
        return f"left alone for {rest.left:.0f} s more: {rest.failures} failures in a row, the last: {rest.reason}"

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            if self._failures:
                self._worked()
        elif isinstance(error, UpstreamFailed):
            self._heard(error, tried=False)

    def _tried(self, error: BaseException | None) -> None:
        self._trying = False
        if error is None:
            self._worked()
        elif isinstance(error, UpstreamFailed):
            self._heard(error, tried=True)

    def _heard(self, failure: UpstreamFailed, *, tried: bool) -> None:
        if not failure.meaning.breaks:
            if failure.status is not None:  # whoever refuses a request is well enough to read it
                self._worked()
            return
        self._failures += 1
        self._reason = failure.message
        if tried or (not self._rests and 0 < self._rule.failures <= self._failures):
            self._leave_alone()  # what was on its way by then, and fails later, says nothing new

    def _leave_alone(self) -> None:
        rest = min(self._rule.first_rest * 2.0**self._rests, self._rule.longest_rest)
        if not self._rests:
            self._since = time.time()
        self._rests = min(self._rests + 1, 64)
        self._until = self._now() + rest
        tell(
            log,
            "warning",
            "upstream.resting",
            provider=self._provider,
            failures=self._failures,
            rest=rest,
            reason=self._reason,
        )

    def _worked(self) -> None:
        if self._rests:
            tell(log, "info", "upstream.recovered", provider=self._provider, failures=self._failures)
        self._failures, self._rests, self._reason = 0, 0, ""

    def _refusal(self) -> UpstreamResting:
        left = max(self._until - self._now(), 1.0)
        since = time.strftime("%H:%M:%S", time.gmtime(self._since))
        again = "is being tried right now" if self._trying else f"is tried again in {left:.0f} s"
        return UpstreamResting(
            f"{self._name} is left alone since {since} UTC: it failed {self._failures} times in a row, at last so: "
            f"{self._reason}; it {again}",
            retry_after=left,
            metadata={"provider": self._provider, "since": int(self._since), "failures": self._failures},
        )

    def _now(self) -> float:
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()


class _Trial:
    """The one request that tries whether it works again."""

    __slots__ = ("_breaker",)

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    def __enter__(self) -> None:
        self._breaker._trying = True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._breaker._tried(error)
