"""A request that is answered once, whole: planned, asked for, and ended by whoever has a reason to.

In: a plan, and what asks for its answer. Out: a `Once` to be awaited. It is no run: nothing of it is stored or
continued. A shutdown waits for it all the same, a client that leaves stops it, and its life is told like that of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from isthmus.conduct.around import Stop
from isthmus.conduct.life import Decided, Life
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.gateway.runs import Runs
from isthmus.ports import Again, Ended
from isthmus.ports.admission import Admitted, Spent
from isthmus.protocol.json import JsonObject

_PARTIAL: Final = ({"type": "partial"},)

_T = TypeVar("_T")
_P = TypeVar("_P", bound="_Sendable")


class _Sendable(Decided, Protocol):
    """A plan with a body."""

    @property
    def body(self) -> JsonObject: ...


class Once(Generic[_P, _T]):
    """One request on its way. Await `answer` once."""

    def __init__(
        self,
        id: str,
        plan: _P,
        ask: Callable[[list[Again]], Awaitable[_T]],
        *,
        what: str,
        usage: Callable[[_T], Mapping[str, Any]],
        life: Life,
        runs: Runs,
        total_timeout: float | None,
        gate: Callable[[], Awaitable[Admitted]] | None = None,
        key: str = "",
    ) -> None:
        """`ask` notes in its list how often it asked again. `what` it is that takes its time, in words: "the
        embeddings". `key`: under which name the key stands that is shown, where callers have keys of their own."""
        self.id = id
        self.plan = plan
        self.failed = False
        """It never is: what fails has a status."""
        self._ask_for = ask
        self._what = what
        self._usage_of = usage
        self._life = life
        self._runs = runs
        self._total = total_timeout
        self._gate = gate
        self._admitted: Admitted | None = None
        self._sent = False
        self._key = key
        self._stop: Stop | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._failure: IsthmusError | None = None
        self._usage: Mapping[str, Any] | None = None

    async def answer(self) -> _T:
        """Raises `UpstreamFailed`, and `CancelledError` where its client is gone."""
        self._waiting = asyncio.current_task()
        with self._runs.guest(self):
            try:
                answer = await self._ask()
            except IsthmusError as failure:
                self._failure = failure
                self._life.failed(self.plan, failure)
                raise
            finally:
                self._waiting = None
                self._settle()
                self._life.end(self.ended())
            return answer

    def stop(self, reason: Stop) -> None:
        """End it now: `left`, its client is gone; anything else is told."""
        if self._stop is None:
            self._stop = reason
            if self._waiting is not None:
                self._waiting.cancel()

    def spoke(self) -> None:
        """Something of the answer is there."""
        self._life.told(_PARTIAL)

    def ended(self) -> Ended:
        """Its life in one fact, as far as it has come."""
        outcome = "completed" if self._usage is not None else "cancelled" if self._stop == "left" else "refused"
        return self._life.whole(self.plan, outcome, self._usage, self._failure)

    async def _ask(self) -> _T:
        if self._told_to_stop():
            raise _shutting_down()
        if self._gate is not None:
            self._admitted = await self._gate()
        self._sent = True
        self._life.sent(self.plan, anew=True, body=self.plan.body, key=self._key)
        trail: list[Again] = []
        try:
            async with asyncio.timeout(self._total):
                answer = await self._ask_for(trail)
            self._life.accepted()
        except TimeoutError:
            raise UpstreamFailed(f"{self._what} took longer than allowed", code="upstream_timeout") from None
        except asyncio.CancelledError:
            if not self._told_to_stop():
                raise
            if self._waiting is not None:
                self._waiting.uncancel()
            raise _shutting_down() from None
        finally:
            self._life.asked_again(self.plan, trail)
        self._usage = self._usage_of(answer)
        return answer

    @property
    def limits(self) -> Mapping[str, str]:
        """How the limits stand that it counts against, as headers."""
        return {} if self._admitted is None else self._admitted.headers

    def _settle(self) -> None:
        if self._admitted is None:
            return
        target, usage = self.plan.target, self._usage or {}
        spent, made = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
        cost = target.capabilities.cost
        used = Spent(target.provider, target.model, cost, input_tokens=spent, output_tokens=made)
        self._admitted.settle([used] if self._sent else [])

    def _told_to_stop(self) -> bool:
        """By somebody else than its client, who is told."""
        return self._stop not in (None, "left")


def _shutting_down() -> UpstreamFailed:
    return UpstreamFailed("the gateway is shutting down; try again", code="server_is_overloaded")
