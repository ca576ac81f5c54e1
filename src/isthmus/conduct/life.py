"""The life of a run as facts for whoever watches: when it was sent, first heard, failed and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from isthmus.bridge.diagnostics import CompatibilityDiagnostic
from isthmus.bridge.types.plan import Target
from isthmus.errors import IsthmusError
from isthmus.ports import AttemptFailed, Ended, FirstToken, Observer, Sent


class Decided(Protocol):
    """Of a plan, whatever it is for."""

    @property
    def target(self) -> Target: ...

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]: ...


class Life:
    __slots__ = ("_begun_at", "_failure", "_first_at", "_id", "_now", "_observer", "_owner", "_whole", "attempts")

    def __init__(self, id: str, owner: str, now: Callable[[], float], observer: Observer | None) -> None:
        self._id = id
        self._owner = owner
        self._now = now
        self._observer = observer
        self._begun_at = now()
        self._first_at: float | None = None
        self._failure: IsthmusError | None = None
        self._whole: Ended | None = None
        self.attempts = 0
        """How often an upstream was asked, repairs and searches not counted."""

    def sent(self, plan: Decided, *, anew: bool) -> None:
        self.attempts += anew
        self._failure = None
        if self._observer is not None:
            self._observer.tell(Sent(self._id, plan.target.provider, plan.target.model, self.attempts))

    def failed(self, plan: Decided, failure: IsthmusError) -> None:
        self._failure = failure
        if self._observer is not None:
            target = plan.target
            self._observer.tell(AttemptFailed(self._id, target.provider, target.model, self.attempts, failure))

    def spoke(self) -> None:
        """It told something: only the first time matters."""
        if self._first_at is None:
            self._first_at = self._now()
            if self._observer is not None:
                self._observer.tell(FirstToken(self._id, self._first_at - self._begun_at))

    def whole(
        self,
        plan: Decided,
        outcome: str,
        usage: Mapping[str, Any] | None,
        failure: IsthmusError | None,
        *,
        background: bool = False,
    ) -> Ended:
        """All of it in one fact, as far as it has come; the same for everybody once it was told."""
        if self._whole is not None:
            return self._whole
        target = plan.target
        if failure is None and outcome == "failed":
            failure = self._failure
        actions = [said.action for said in plan.diagnostics]
        return Ended(
            id=self._id,
            owner=self._owner,
            provider=target.provider,
            model=target.model,
            attempts=self.attempts,
            outcome=outcome,
            failure=failure,
            usage=usage,
            cost=target.capabilities.cost,
            seconds=self._now() - self._begun_at,
            first_token=None if self._first_at is None else self._first_at - self._begun_at,
            degraded=actions.count("degraded"),
            ignored=actions.count("ignored"),
            background=background,
        )

    def end(self, whole: Ended) -> None:
        self._whole = whole
        if self._observer is not None:
            self._observer.tell(whole)
