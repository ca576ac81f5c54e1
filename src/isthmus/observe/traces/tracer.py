"""Gathers the facts of each request until it is over, then hands them to the recorder; and knows what is captured.

Three of them are all that is needed: what was planned, the end of the run, which tells all its steps, and the answer,
which tells how the request came. How many requests are open at a time is bounded; the facts of one more are not
gathered, and it is counted as lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.recorder import Recorder
from isthmus.ports import Answered, Ended, Fact, Planned
from isthmus.ports.traces import Capturing, TraceStore
from isthmus.scrub import Secret

MOST_OPEN: Final = 20_000


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
        return self._special.get(kind)

    def tell(self, fact: Fact) -> None:
        hear = self.ear(type(fact))
        if hear is not None:
            hear(fact)

    def _plan(self, fact: Planned) -> None:
        if len(self._open) < MOST_OPEN:
            clock = self._clock()
            draft = self._open[fact.id] = Draft(clock, clock, fact)
            if fact.request:
                self._open[fact.request] = draft

    def _finish(self, fact: Ended) -> None:
        draft = self._open.pop(fact.id, None)
        if draft is None:
            return
        draft.ended, draft.last = fact, self._clock()
        draft.over = draft.last
        if draft.answered is not None or (planned := draft.planned) is None or not planned.request:
            self._put(draft)  # of a run without a request, nothing more comes

    def _answer(self, fact: Answered) -> None:
        clock = self._clock()
        draft = self._open.pop(fact.request, None)
        if draft is None:
            if fact.id:  # it was planned when there was no room
                self._recorder.lost += 1
                return
            draft = Draft(clock, clock)
        draft.answered, draft.began, draft.last = fact, clock - fact.seconds, clock
        planned = draft.planned
        if planned is not None and draft.ended is None:
            if planned.background and fact.failure is None:
                return  # it goes on
            self._open.pop(planned.id, None)  # it was planned, and never carried out
        self._put(draft)

    def _put(self, draft: Draft) -> None:
        draft.at = self._now() - (draft.last - draft.began)
        answered, planned = draft.answered, draft.planned
        if answered is not None:
            draft.weight += answered.size
        if planned is not None and (size := getattr(planned.plan, "size", 0)) > draft.weight:
            draft.weight = size
        if self._may_be_full:
            draft.full = self._was_full(draft)
        self._recorder.put(draft)

    # ── what is captured ───────────────────────────────────────────────────────────────────────────

    @property
    def store(self) -> TraceStore:
        return self._recorder.store

    def wants_all(self, owner: str, key: str, size: int) -> bool:
        return self._may_be_full and size <= self._rule.max_content and self._is_full(owner, key)

    def _was_full(self, draft: Draft) -> bool:
        """Whether it was wanted when it came, or is by now."""
        received, answered, planned = draft.received, draft.answered, draft.planned
        if received is not None and received.raw is not None:
            return True
        if answered is not None:
            return self._is_full(answered.owner, answered.key)
        return planned is not None and self._is_full(planned.owner, "")

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
