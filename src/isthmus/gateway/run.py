"""One response on its way: the short loop that carries out what the turn commands.

    Send  → call the backend, feed its deltas back
    Check → have it done where it stops nobody, give the result back
    Done  → save, then hand out the terminal event

It ends in exactly one terminal event, whatever happens: the upstream's end, its error, a timeout, a
cancel, a shutdown. Events are handed out in batches, pulled by whoever reads: a slow reader slows the
upstream down, nothing is queued. A reader that goes away closes the iterator: the upstream connection is
closed at once, and what there was is saved as cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.lessons import find_refusal, learn
from isthmus.bridge.turn import Check, Done, Send, Turn
from isthmus.bridge.types.plan import Lesson, Plan, Target
from isthmus.errors import IsthmusError, RequestRefused, UpstreamFailed
from isthmus.ports import Backend, Checker
from isthmus.protocol.events import Event
from isthmus.protocol.response import FinishedResponse, Response

log = logging.getLogger("isthmus.gateway")

Stop = Literal["cancelled", "left", "shutdown", "timeout"]
Save = Callable[[FinishedResponse, Plan], Awaitable[None]]
"""Makes a finished response durable."""
Keep = Callable[[str, Lesson, Target], Awaitable[None]]
"""Keeps what a server taught us, under the id of the response that taught it."""

_LAST_WORDS: Final = 30.0
"""Seconds that a reader has to take the terminal event of a response that took too long."""

_T = TypeVar("_T")


class _Stopped(Exception):
    """`stop` was called while nobody was waiting on the upstream."""


class Running:
    """The runs that are under way, and a way to wait until there are none."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._none = asyncio.Event()
        self._none.set()

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, id: str) -> Run | None:
        return self._runs.get(id)

    def add(self, run: Run) -> None:
        self._runs[run.id] = run
        self._none.clear()

    def remove(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        if not self._runs:
            self._none.set()

    def stop(self, reason: Stop) -> None:
        for run in list(self._runs.values()):
            run.stop(reason)

    def abandon(self) -> None:
        for run in list(self._runs.values()):
            run.abandon()

    async def none(self) -> None:
        await self._none.wait()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to answer: a plan made for its own target, and the way to that target."""

    plan: Plan
    turn: Turn
    backend: Backend
    without: Callable[[Lesson], Attempt] | None = None
    """The same way, planned anew without the field that its server has just refused."""


class Run:
    """A turn with its backend and its store. Iterate `events` once.

    A server that refuses a field by name is asked once more without it; `others` are tried, in order, when the
    upstream refuses before anything was told. Once something was, the run is never started over.
    """

    def __init__(
        self,
        id: str,
        first: Attempt,
        *,
        others: Iterator[Attempt] | None = None,
        running: Running,
        checker: Checker,
        save: Save,
        now: Callable[[], float],
        total_timeout: float | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.id = id
        self._attempt = first
        self._others = others if others is not None else iter(())
        self._running = running
        self._checker = checker
        self._save = save
        self._now = now
        self._total = total_timeout
        self._keep = keep
        self._refused: list[tuple[Lesson, Target]] = []
        """Fields that the server of this attempt refused; proven once it takes the request without them."""
        self._notes: list[CompatibilityDiagnostic] = []
        self._reader: asyncio.Task[object] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stop: Stop | None = None
        self.response: FinishedResponse | None = None
        """The finished Response object, once there is one."""
        self.failure: UpstreamFailed | None = None
        self.abandoned = False
        """Whether its reader was cut off."""

    @property
    def plan(self) -> Plan:
        """The plan of the attempt that answers."""
        return self._attempt.plan

    @property
    def _turn(self) -> Turn:
        return self._attempt.turn

    @property
    def finished(self) -> bool:
        return self.response is not None

    def _stopping(self) -> bool:
        return self._stop is not None

    def queued(self) -> Response:
        """The response as it is before anything happened."""
        return self._turn.queued()

    def heartbeat(self) -> Event | None:
        """A sign of life for a silent stream; none before it began or after it ended."""
        return self._turn.heartbeat() if self._turn.started and not self._turn.ended else None

    def stop(self, reason: Stop) -> None:
        """End it now. Whoever iterates gets the terminal event next."""
        if self._stop is None and not self._turn.ended:
            self._stop = reason
            if self._waiting is not None:
                self._waiting.cancel()

    def abandon(self) -> None:
        """It was stopped, and its reader does not even take that: cut the reader off. What there was is saved."""
        saving = self._turn.ended and not self.finished
        if self._reader is not None and self._waiting is None and not saving:
            self.abandoned = True
            self._reader.cancel()

    def _expire(self) -> None:
        self.stop("timeout")
        self._timer = asyncio.get_running_loop().call_later(_LAST_WORDS, self.abandon)

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Batches of events, the last of which ends with the terminal one.

        Raises `UpstreamFailed` if the upstream refuses before anything was told: that failure still has
        its HTTP status.
        """
        self._running.add(self)
        self._reader = asyncio.current_task()
        if self._total is not None:
            self._timer = asyncio.get_running_loop().call_later(self._total, self._expire)
        try:
            refused = True
            while refused:
                try:
                    async with aclosing(self._steps()) as steps:
                        async for batch in steps:
                            yield batch
                    refused = False
                except UpstreamFailed as failure:
                    if not self._ask_without(failure):
                        self._try_next(failure)
        finally:
            self._reader = None
            if self._timer is not None:
                self._timer.cancel()
            self._running.remove(self)

    async def fold(self) -> FinishedResponse:
        """The whole answer: the same events, not looked at."""
        async for _ in self.events():
            pass
        assert self.response is not None
        return self.response

    def _ask_without(self, failure: UpstreamFailed) -> bool:
        """Ask the same model once more, where it refused a field by name that was sent on trust.

        Each field goes at most once: the new plan does not have it. A strict caller would rather have the refusal.
        """
        refused, without = find_refusal(failure, self.plan), self._attempt.without
        if refused is None or without is None or self._stopping():
            return False
        lesson = replace(refused, learned_at=self._now())
        try:
            following = without(lesson)
        except RequestRefused as error:
            log.info("lesson.refused id=%s parameter=%s reason=%r", self.id, lesson.parameter, str(error))
            return False
        if lesson.parameter in following.plan.body:
            return False
        log.warning("attempt.without id=%s parameter=%s reason=%r", self.id, lesson.parameter, str(failure))
        self._refused.append((lesson, learn(self.plan.target, [lesson])))
        self._go_on_with(following)
        return True

    def _go_on_with(self, following: Attempt) -> None:
        for note in self._notes:
            following.turn.note(note)
        self._attempt = following

    async def _learn(self) -> None:
        """The server took the request without what it refused."""
        refused, self._refused = self._refused, []
        for lesson, target in refused:
            if self._keep is not None:
                await self._keep(self.id, lesson, target)

    def _try_next(self, failure: UpstreamFailed) -> None:
        """Go on with the next attempt, which reports why it was needed; without one, the failure stands."""
        following = next(self._others, None)
        if following is None:
            raise failure
        target = self.plan.target
        name = f"{target.provider}/{target.model}"
        log.warning("attempt.failed id=%s model=%s reason=%r", self.id, name, str(failure))
        words = f"`{name}` failed ({failure.message}); this model answered in its place"
        self._notes.append(notice("bridge.attempt.failed", "model", words, reason=failure.code))
        self._refused = []
        self._go_on_with(following)

    async def refused(self, failure: UpstreamFailed) -> list[Event]:
        """The upstream refused before anything was told, and nobody is there for an HTTP status: say it here."""
        done = self._turn.fail(failure, self._time())
        return (await self._finish(done)).events

    async def _steps(self) -> AsyncGenerator[list[Event], None]:
        turn = self._turn
        command: Send | Done = turn.begin()
        try:
            while isinstance(command, Send):
                sending = self._attempt.backend.send(turn.plan, command.body)
                answer = await self._wait(sending.__aenter__())
                try:
                    await self._learn()
                    events = turn.accepted()
                    if events:
                        yield events
                    while not turn.broken:
                        deltas = await self._wait(anext(answer, None))
                        if deltas is None:
                            break
                        events = turn.feed(deltas)
                        if events:
                            yield events
                        if turn.pending is not None:
                            yield await self._check_pending()
                finally:
                    await sending.__aexit__(None, None, None)
                command = await self._end()
            done = command
        except GeneratorExit:  # the reader is gone, for whatever reason: nothing can be handed out any more
            await self._finish(self._stopped())
            raise
        except asyncio.CancelledError:
            if self._stop in (None, "left"):
                await self._finish(turn.cancel(self._time()))
                raise
            done = self._stopped()
        except _Stopped:
            done = self._stopped()
        except UpstreamFailed as failure:
            if not turn.started:
                raise
            done = turn.fail(failure, self._time())
        except Exception:
            if not turn.started:
                raise
            log.exception("response.broken id=%s", self.id)  # our own bug: the client still hears the end
            broken = UpstreamFailed("the gateway failed while it made this response; its log says more")
            done = turn.fail(broken, self._time())
        yield (await self._finish(done)).events

    async def _check_pending(self) -> list[Event]:
        """What had to wait for a check, once it was made."""
        turn = self._turn
        events: list[Event] = []
        while (check := turn.pending) is not None:
            turn.checked(await self._wait(self._checker.check(check.job)))
            events += turn.feed(())
        return events

    async def _end(self) -> Done | Send:
        turn = self._turn
        while isinstance(command := turn.end(self._time()), Check):
            turn.checked(await self._wait(self._checker.check(command.job)))
        return command

    async def _wait(self, awaitable: Awaitable[_T]) -> _T:
        """Wait on the upstream: the only place where `stop` cancels the reader's task."""
        if self._stopping():
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise _Stopped
        self._waiting = asyncio.current_task()
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._stopping() and self._waiting is not None:
                self._waiting.uncancel()
            raise
        finally:
            self._waiting = None

    def _stopped(self) -> Done:
        if self._stop == "shutdown":
            failure = UpstreamFailed("the gateway is shutting down; try again", code="server_is_overloaded")
        elif self._stop == "timeout":
            failure = UpstreamFailed("the response took longer than allowed", code="upstream_timeout")
            if not self._turn.started:
                raise failure  # nothing was told yet: it still has its HTTP status
        else:
            return self._turn.cancel(self._time())
        return self._turn.fail(failure, self._time())

    async def _finish(self, done: Done) -> Done:
        try:
            await self._save(done.response, self.plan)
        except IsthmusError as error:
            # What was promised to be kept is not: the client must not believe otherwise.
            log.error("response.save.failed id=%s reason=%s", self.id, error)
            done = done.unkept(error.code, f"the response could not be stored: {error}")
        self.response = done.response
        self.failure = done.failure
        return done

    def _time(self) -> int:
        return int(self._now())
