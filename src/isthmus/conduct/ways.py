"""The ways to answer one request: the same server without a field that it refused, then the fallbacks.

Only what failed before anything was told goes another way.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.lessons import find_refusal, lasts, learn
from isthmus.bridge.types.plan import Lesson, Target
from isthmus.conduct.attempt import Attempt
from isthmus.errors import BY_HOOKS, IsthmusError, RequestRefused, UpstreamFailed
from isthmus.log import tell

log = logging.getLogger("isthmus.conduct")

Keep = Callable[[str, Lesson, Target], Awaitable[None]]
"""Keeps what a server taught us, under the id of the response that taught it."""


class Ways:
    """`current` is the one that is tried."""

    def __init__(
        self, id: str, first: Attempt, others: Iterator[Attempt], *, now: Callable[[], float], keep: Keep | None
    ) -> None:
        self.current = first
        self._id = id
        self._others = others
        self._now = now
        self._keep = keep
        self._refused: list[tuple[Lesson, Target]] = []
        """Fields that the server of this attempt refused; proven once it takes the request without them."""
        self._notes: list[CompatibilityDiagnostic] = []

    def go_on_after(self, failure: IsthmusError) -> bool:
        """Whether there is another way; it is the current one then. What the operator's hooks refuse is refused."""
        if failure.code in BY_HOOKS:
            return False
        return self._ask_without(failure) or self._try_next(failure)

    async def accepted(self) -> None:
        """The server took the request, and so without what it had refused."""
        refused, self._refused = self._refused, []
        for lesson, target in refused:
            if self._keep is not None:
                await self._keep(self._id, lesson, target)

    def _ask_without(self, failure: IsthmusError) -> bool:
        """Ask the same model once more, where it refused a field by name that was sent on trust.

        Each field goes at most once: the new plan does not have it. A strict caller would rather have the refusal.
        """
        if not isinstance(failure, UpstreamFailed):
            return False
        plan, without = self.current.plan, self.current.without
        refused = find_refusal(failure, plan)
        if refused is None or without is None:
            return False
        lesson = replace(refused, learned_at=self._now())
        try:
            following = without(lesson)
        except RequestRefused as error:
            tell(log, "info", "lesson.refused", id=self._id, parameter=lesson.parameter, reason=str(error))
            return False
        if lesson.parameter in following.plan.body:
            return False
        tell(log, "warning", "attempt.without", id=self._id, parameter=lesson.parameter, reason=str(failure))
        if lasts(lesson):
            self._refused.append((lesson, learn(plan.target, [lesson])))
        else:
            words = "the provider refused a thinking block of an earlier turn; it was asked once more without them"
            self._notes.append(notice("bridge.history.repaired", "input", words, reason=failure.code))
        self._take(following)
        return True

    def _try_next(self, failure: IsthmusError) -> bool:
        """Go on with the next way to answer, which reports why it was needed."""
        following = next(self._others, None)
        if following is None:
            return False
        target = self.current.plan.target
        name = f"{target.provider}/{target.model}"
        words = f"`{name}` failed ({failure.message}); this model answered in its place"
        self._notes.append(notice("bridge.attempt.failed", "model", words, reason=failure.code))
        self._refused = []
        self._take(following)
        return True

    def _take(self, following: Attempt) -> None:
        for note in self._notes:
            following.turn.note(note)
        self.current = following
