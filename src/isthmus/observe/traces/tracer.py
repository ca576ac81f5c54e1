"""Gathers the facts of each request until it is over, then hands them to the recorder; and knows what is captured.

On the loop there is nothing but this: a fact is put behind the others of its request. How many requests are open at a
time is bounded; the facts of one more are not gathered, and it is counted as lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.recorder import Recorder
from isthmus.ports import Answered, Ended, Fact, FirstToken, Planned, Received
from isthmus.ports.traces import Capturing, TraceStore
from isthmus.scrub import Secret

MOST_OPEN: Final = 20_000
_SMALL: Final = 4_000
"""Bytes that a draft takes beside the bodies that it refers to."""


@dataclass(frozen=True, slots=True)
class CaptureRule:
    full: bool = False
    """Whether everything is captured with its content."""
    full_for: frozenset[str] = frozenset()
    """Owners and ids of keys whose requests are."""
    max_content: int = 1_000_000


class Tracer:
    def __init__(
        self,
        recorder: Recorder,
        rule: CaptureRule = CaptureRule(),  # noqa: B008  # frozen
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._recorder = recorder
        self._rule = rule
        self._now, self._clock = now, clock
        self._open: dict[str, Draft] = {}
        self._special: dict[type, Callable[[Any], None]] = {
            Received: self._receive,
            Planned: self._plan,
            Ended: self._finish,
            Answered: self._answer,
        }
        self._full_until = 0.0
        self._full_owner = self._full_key = ""
        self._may_be_full = self._rule.full or bool(self._rule.full_for)
        """Whether anybody's content may be wanted at all."""

    # ── what is told ───────────────────────────────────────────────────────────────────────────────

    def ear(self, kind: type[Any]) -> Callable[[Any], None] | None:
        return None if kind is FirstToken else self._special.get(kind, self._add)  # the end tells that one, too

    def tell(self, fact: Fact) -> None:
        hear = self.ear(type(fact))
        if hear is not None:
            hear(fact)

    def _add(self, fact: Any) -> None:
        if fact.id in self._open:
            self._open[fact.id].facts.append((self._clock(), fact))

    def _receive(self, fact: Received) -> None:
        draft = self._begin(fact.owner, fact.key, fact.seconds, fact)
        if draft is not None:
            self._open[fact.request] = draft

    def _plan(self, fact: Planned) -> None:
        draft = self._open.get(fact.request) or self._begin(fact.owner, "", 0.0)
        if draft is not None:
            draft.planned = fact
            size = getattr(fact.plan, "size", 0)
            if size > draft.weight:
                draft.weight = size
            self._open[fact.id] = draft

    def _finish(self, fact: Ended) -> None:
        draft = self._open.pop(fact.id, None)
        if draft is not None:
            draft.ended, draft.last = fact, self._clock()
            if draft.answered is not None or draft.received is None:  # of a run without a request, nothing more comes
                self._recorder.put(draft)

    def _answer(self, fact: Answered) -> None:
        draft = self._open.pop(fact.request, None) or self._begin(fact.owner, fact.key, fact.seconds)
        if draft is None:
            return
        draft.answered, draft.last = fact, self._clock()
        planned = draft.planned
        if planned is not None and draft.ended is None:
            if planned.background and fact.failure is None:
                return  # it goes on
            self._open.pop(planned.id, None)  # it was planned, and never carried out
        self._recorder.put(draft)

    def _begin(self, owner: str, key: str, ago: float, received: Received | None = None) -> Draft | None:
        if len(self._open) >= MOST_OPEN:
            self._recorder.lost += 1
            return None
        clock = self._clock()
        full = self._may_be_full and self._is_full(owner, key)
        weight = _SMALL if received is None else _SMALL + received.size
        return Draft(self._now() - ago, clock - ago, clock, full, weight, received)

    # ── what is captured ───────────────────────────────────────────────────────────────────────────

    @property
    def store(self) -> TraceStore:
        return self._recorder.store

    def wants_all(self, owner: str, key: str, size: int) -> bool:
        return self._may_be_full and size <= self._rule.max_content and self._is_full(owner, key)

    def _is_full(self, owner: str, key: str) -> bool:
        rule = self._rule
        if rule.full or owner in rule.full_for or (key and key in rule.full_for):
            return True
        if not self._full_until or self._now() >= self._full_until:
            return False
        return self._full_owner in ("", owner) and self._full_key in ("", key)

    def capture_all(self, seconds: float, *, owner: str = "", key: str = "") -> Capturing:
        self.capture_until(self._now() + seconds if seconds > 0 else 0.0, owner, key)
        return self.capturing()

    def capture_until(self, until: float, owner: str, key: str) -> None:
        """As another gateway on the store was told."""
        self._full_until, self._full_owner, self._full_key = until, owner, key
        self._may_be_full = self._may_be_full or until > 0.0

    def capturing(self) -> Capturing:
        recorder = self._recorder
        going_on = self._now() < self._full_until
        scope: dict[str, Any] = {"owner": self._full_owner, "key": self._full_key} if going_on else {}
        return Capturing(
            capture="full" if self._rule.full else "metadata",
            full_until=self._full_until if going_on else None,
            **scope,
            kept=recorder.kept,
            lost=recorder.lost,
            withheld=recorder.cleaner.withheld,
            delayed=recorder.delayed,
        )

    @property
    def waiting(self) -> int:
        """Traces that are not written yet."""
        return self._recorder.waiting

    async def room_to_forget(self) -> None:
        await self._recorder.room_to_forget()

    def learn(self, secrets: Sequence[Secret]) -> None:
        """Secrets that came with another configuration."""
        self._recorder.cleaner.learn(secrets)

    def forget(self, owner: str, response: str) -> None:
        self._recorder.forget(owner, response)

    async def settle(self) -> None:
        await self._recorder.settle()

    async def aclose(self) -> None:
        await self._recorder.aclose()
