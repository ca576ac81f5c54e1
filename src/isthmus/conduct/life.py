"""The life of a run as facts for whoever watches: when it was sent, first heard, failed and ended."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import inf
from time import monotonic
from typing import Any, Final, Protocol

from isthmus.bridge.contract.check import ContractCheck
from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.types.managed import ManagedCall, Ran
from isthmus.bridge.types.plan import Target
from isthmus.errors import IsthmusError
from isthmus.ports import (
    Accepted,
    Again,
    Asking,
    AttemptFailed,
    ContractChecked,
    Ended,
    FirstToken,
    Mark,
    Observer,
    Retried,
    Sent,
    Step,
    ToolRan,
)
from isthmus.ports.usage import used_tokens


class Decided(Protocol):
    """Of a plan, whatever it is for."""

    @property
    def target(self) -> Target: ...

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]: ...


MOST_MARKS: Final = 64
"""Moments of a stream that are remembered: of a longer one every second, fourth … batch."""
_NEVER: Final = 1 << 62


@lru_cache(128)
def _short(event: str) -> str:
    """One string for all marks of all streams that are open."""
    return event.removeprefix("response.")


class Life:
    __slots__ = (
        *("_batches", "_begun_at", "_due", "_events", "_failure", "_first_at", "_first_byte", "_id", "_longest_gap"),
        *("_now", "_observer", "_over_at", "_owner", "_seconds", "_sent_at", "_steps", "_stride", "_told_at", "_whole"),
        *("attempts", "batches"),
    )

    def __init__(self, id: str, owner: str, now: Callable[[], float], observer: Observer | None) -> None:
        self._id = id
        self._owner = owner
        self._now = now
        self._observer = observer
        self._begun_at = now()
        self._sent_at = self._begun_at
        self._first_at: float | None = None
        self._first_byte: float | None = None
        self._over_at: float | None = None
        self._failure: IsthmusError | None = None
        self._whole: Ended | None = None
        self.attempts = 0
        """How often an upstream was asked, repairs and searches not counted."""
        self.batches = 0
        """Batches of events that were told."""
        self._longest_gap = 0.0
        """Seconds between two of one answer."""
        self._told_at = inf
        self._due = 1
        """Which of them is the next to be remembered."""
        self._stride = 1
        self._seconds, self._batches = array("d"), array("L")
        self._events: list[str] = []
        """Of each moment that is remembered: when it was, with which batch, and with what."""
        self._steps: list[tuple[float, Step]] = []

    def sent(
        self,
        plan: Decided,
        *,
        anew: bool,
        why: Asking = "first",
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> None:
        again = self.attempts > 0
        self.attempts += anew
        self._failure = None
        self._sent_at, self._over_at = self._now(), None
        if self._observer is not None:
            asking = "anew" if anew and again and why == "first" else why
            target = plan.target
            self._tell(Sent(self._id, target.provider, target.model, self.attempts, asking, body, key))

    def accepted(self) -> None:
        """The head of the answer is here."""
        self._told_at = inf
        self._first_byte = self._now() - self._sent_at
        if self._observer is not None:
            self._tell(Accepted(self._id, self._first_byte))

    def asked_again(self, plan: Decided, trail: Sequence[Again]) -> None:
        """What happened below the asking that was told last."""
        if self._observer is not None:
            for again in trail:
                self._tell(Retried(self._id, plan.target.provider, again.failure, again.wait, again.elsewhere))

    def failed(self, plan: Decided, failure: IsthmusError) -> None:
        self._failure = failure
        if self._observer is not None:
            target = plan.target
            self._tell(AttemptFailed(self._id, target.provider, target.model, self.attempts, failure))

    def told(self, events: Sequence[Mapping[str, Any]]) -> None:
        """A batch of an answer: the first word, and now and then a later one, is remembered."""
        now = monotonic()
        if now - self._told_at > self._longest_gap:
            self._longest_gap = now - self._told_at
        self._told_at = now
        self.batches = batches = self.batches + 1
        if batches >= self._due:
            self._mark(events[-1]["type"])

    def _mark(self, event: str) -> None:
        now = self._now()
        if self._first_at is None:
            self._first_at = now
            if self._observer is not None:
                self._observer.tell(FirstToken(self._id, now - self._begun_at))
        batches = self._batches
        self._seconds.append(now - self._begun_at)
        batches.append(self.batches)
        self._events.append(_short(event))
        if len(batches) == MOST_MARKS:
            del self._seconds[1::2], batches[1::2], self._events[1::2]
            self._stride *= 2
        self._due = _NEVER if self._observer is None else batches[-1] + self._stride

    def over(self) -> None:
        """The upstream has said its last word."""
        self._over_at = self._now()

    def ran(self, call: ManagedCall, ran: Ran | None, seconds: float) -> None:
        """A tool of the host was run."""
        if self._observer is not None:
            self._tell(ToolRan(self._id, call, ran, seconds))

    def checked(self, checks: Sequence[ContractCheck]) -> None:
        """The answer was held against its format, since the upstream's last word."""
        if self._observer is not None and checks:
            seconds = self._now() - (self._over_at or self._begun_at)
            for check in checks:
                self._tell(ContractChecked(self._id, check, seconds))

    def whole(
        self,
        plan: Decided,
        outcome: str,
        usage: Mapping[str, Any] | None,
        failure: IsthmusError | None,
        *,
        background: bool = False,
        events: int = 0,
        response: Mapping[str, Any] | None = None,
        written: bytes | None = None,
    ) -> Ended:
        """All of it in one fact, as far as it has come; the same for everybody once it was told."""
        if self._whole is not None:
            return self._whole
        target = plan.target
        if failure is None and outcome == "failed":
            failure = self._failure
        actions = [said.action for said in plan.diagnostics]
        used = used_tokens(usage)
        now = self._now()
        return Ended(
            id=self._id,
            owner=self._owner,
            provider=target.provider,
            model=target.model,
            attempts=self.attempts,
            outcome=outcome,
            failure=failure,
            usage=usage,
            price=target.capabilities.cost.price(*used[:3]) if usage else None,
            seconds=now - self._begun_at,
            first_token=None if self._first_at is None else self._first_at - self._begun_at,
            degraded=actions.count("degraded"),
            ignored=actions.count("ignored"),
            background=background,
            first_byte=self._first_byte,
            settled=0.0 if self._over_at is None else now - self._over_at,
            batches=self.batches,
            events=events,
            longest_gap=self._longest_gap,
            marks=tuple(map(Mark, self._seconds, self._batches, self._events)),
            response=response,
            written=written,
            used=used,
            steps=self._steps,
        )

    def _tell(self, step: Step) -> None:
        self._steps.append((self._now() - self._begun_at, step))
        self._observer.tell(step)  # type: ignore[union-attr]  # there is one: nothing is made for nobody

    def end(self, whole: Ended) -> None:
        self._whole = whole
        if self._observer is not None:
            self._observer.tell(whole)
