"""One response on its way: the only loop that awaits, for the gateway and the library alike.

    Send  → call the backend, feed its deltas back
    Check → have it done where it stops nobody, give the result back
    RunTool → carry calls out that run here, give back what came of each
    Emit  → a batch of events, pulled by whoever reads: a slow reader slows the upstream down, nothing is queued
    Done  → save, then hand out the terminal event

A run always ends itself. Whatever rises (a refusal, a setting, a bug of ours, a store that fails, a cancel, a
shutdown) becomes one terminal fact: saved, then told. Only what fails before anything was told may be tried
elsewhere: the same server without a field that it refused, then the fallbacks; and only that is raised, because it
still has an HTTP status, unless nobody is there to get one (`tells_refusals`). A reader that goes away closes the
iterator: the upstream connection is closed at once, and what there was is saved as cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from isthmus.bridge.commands import Check, Done, RunTool, Send
from isthmus.bridge.deltas import Delta
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.around import Recorder, Refused, Save, Stop, Stopped, Track
from isthmus.conduct.aside import Aside
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.hosted import NO_TOOLS, Hosted
from isthmus.conduct.life import Life
from isthmus.conduct.spend import Gate, Spend
from isthmus.conduct.tools import run_tools
from isthmus.conduct.ways import Keep, Ways
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.log import tell
from isthmus.ports import OURS, Behalf, Checker, Ended, Observer, key_for, limits_of, trail_of
from isthmus.protocol.events import Event
from isthmus.protocol.response import FinishedResponse, Response

if TYPE_CHECKING:  # loaded only where somebody has hooks
    from isthmus.bridge.parse import Request
    from isthmus.conduct.review import Review

log = logging.getLogger("isthmus.conduct")

_LAST_WORDS: Final = 30.0
"""Seconds that a reader has to take the terminal event of a response that took too long."""

_T = TypeVar("_T")


class Run:
    """A turn with its backend. Iterate `events` once; `others` are the ways to try when the first fails in time."""

    def __init__(
        self,
        id: str,
        first: Attempt,
        *,
        others: Iterator[Attempt] | None = None,
        behalf: Behalf = OURS,
        checker: Checker,
        now: Callable[[], float],
        save: Save | None = None,
        keep: Keep | None = None,
        track: Track | None = None,
        observer: Observer | None = None,
        total_timeout: float | None = None,
        aside: Aside | None = None,
        release: Callable[[], Awaitable[None]] | None = None,
        hosted: Hosted = NO_TOOLS,
        gate: Gate | None = None,
        review: Review | None = None,
    ) -> None:
        """`gate` lets it through before anything is sent, or not. `release` gives back what was taken for it, however
        it ends. `aside`: where others must not wait for what a large request takes; without it, that is done on the
        spot. `review`: what the operator's hooks have a say in."""
        self.id = id
        self.owner = behalf.owner
        self._behalf = behalf
        self.tells_refusals = False
        """Whether a failure before anything was told becomes events too: nobody is there for a status."""
        self._ways = Ways(id, first, iter(()) if others is None else others, now=now, keep=keep)
        self._life = Life(id, behalf.owner, now, observer)
        self._checker = checker
        self._now = now
        self._save = save
        self._track = track
        self._total = total_timeout
        self._aside = aside
        self._release = release
        self._hosted = hosted
        self._spend = Spend(gate)
        self._review = review
        self._at_work = False
        """Whether the turn is worked on aside: nobody else may touch it."""
        self._answering: object = None
        """What the upstream accepted last."""
        self._reader: asyncio.Task[object] | None = None
        self._waiting: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stop: Stop | None = None
        self.response: FinishedResponse | None = None
        """The finished Response object, once there is one."""
        self.written: bytes | None = None
        """The same as JSON, where it was written to be kept, and is small."""
        self.failure: IsthmusError | None = None
        self.bug: Exception | None = None
        """What rose that nobody raised on purpose."""
        self.abandoned = False
        """Whether its reader was cut off."""
        self.lost = False
        """Whether somebody else makes or ends it now: how it ends is not to be learned here."""
        self.asked: Request | None = None
        """The request as it is planned and kept, where that is another one than the client's."""
        self.recorder: Recorder | None = None
        """Whoever takes note of what is told, where that is worth it."""

    @property
    def plan(self) -> Plan:
        """The plan of the attempt that answers."""
        return self._ways.current.plan

    @property
    def limits(self) -> Mapping[str, str]:
        """What the provider that answers said of its rate limits, and how ours stand, as headers."""
        return self._spend.with_limits(limits_of(self._answering))

    @property
    def _turn(self) -> Turn:
        return self._ways.current.turn

    @property
    def finished(self) -> bool:
        return self.response is not None

    @property
    def failed(self) -> bool:
        return self.response is not None and self.response["status"] == "failed"

    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stop is not None

    def queued(self) -> Response:
        """The response as it is before anything happened."""
        return self._turn.queued()

    def heartbeat(self) -> Event | None:
        """A sign of life for a silent stream; none before it began or after it ended."""
        if self._at_work or not self._turn.started or self._turn.ended:
            return None
        return self._tell_now(self._turn.heartbeat())

    def _tell_now(self, event: Event) -> Event:
        """Out of turn: nothing waits for it."""
        if self._review is not None and (told := self._review.tell(event)) is not None:
            return told
        self._record([event])
        return event

    def _record(self, events: list[Event]) -> list[Event]:
        if self.recorder is not None:
            self.recorder.add(events)
        return events

    def stop(self, reason: Stop) -> None:
        """End it now. Whoever iterates gets the terminal event next."""
        if self._stop is None and not self._turn.ended:
            self._stop = reason
            if self._waiting is not None:
                self._waiting.cancel()

    def steer(self) -> None:
        """End it with the item that is open, or now: somebody has more to say, and goes on from there."""
        if not self._turn.ended and not self._turn.steer():
            self.stop("steered")

    @property
    def told(self) -> int:
        """How many events it has told."""
        return self._turn.told

    def tell_steering(self, kind: str, **fields: object) -> Event:
        """An event about that, numbered on; also behind the terminal one."""
        event = self._turn.tell_steering(kind, **fields)
        return event if self._turn.ended else self._tell_now(event)

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

        Raises what failed before anything was told, unless the run `tells_refusals`.
        """
        if self._track is not None:
            self._track.begun(self)
        self._reader = asyncio.current_task()
        if self._total is not None:
            self._timer = asyncio.get_running_loop().call_later(self._total, self._expire)
        review = self._review
        if review is not None:
            self.recorder = review.begin(self.recorder)
        try:
            failure = await self._spend.enter(self.plan)
            while failure is None:
                try:
                    async with aclosing(self._steps()) as steps:
                        async for batch in steps:
                            if review is None or (batch := review.take(batch)):
                                yield batch
                    return
                except Refused as refused:
                    failure = refused.failure
                if not self.stopping() and await self._goes_on_after(failure):
                    failure = None
            self.failure = failure
            if not self.tells_refusals:
                raise failure
            yield await self.tell(failure)
        finally:
            self._reader = None
            if self._timer is not None:
                self._timer.cancel()
            if self._track is not None:
                self._track.over(self)
            self._spend.settle()
            self._life.end(self.ended())
            await self.let_go()

    async def let_go(self) -> None:
        """Give back what was taken for it: also for one that is never iterated."""
        if self._release is not None:
            await self._release()

    async def _goes_on_after(self, failure: IsthmusError) -> bool:
        try:
            return await self._do(lambda: self._ways.go_on_after(failure))
        except Exception as error:  # what cannot even be planned is no way: the failure that there was is told
            known = isinstance(error, IsthmusError)
            tell(log, "error", "attempt.not_planned", id=self.id, reason=error, trace=None if known else error)
            return False

    async def fold(self) -> FinishedResponse:
        """The whole answer: the same events, not looked at."""
        async for _ in self.events():
            pass
        assert self.response is not None
        return self.response

    async def tell(self, failure: IsthmusError) -> list[Event]:
        """A failure before anything was told, as the events of a whole life: where there is no status to tell it."""
        return (await self._finish(self._turn.fail(failure, self._time()))).events

    # ── the loop ───────────────────────────────────────────────────────────────────────────────────

    async def _steps(self) -> AsyncGenerator[list[Event], None]:
        turn, life, anew = self._turn, self._life, True
        command = turn.begin(self._time())
        try:
            while not isinstance(command, Done):
                if isinstance(command, RunTool):
                    tools = run_tools(turn, command, self._hosted, self._behalf, self._wait, life.ran)
                    async with aclosing(tools) as told:
                        async for events in told:
                            yield self._record(events)
                    command = await self._end()
                    continue
                sending, anew = await self._send(command, anew=anew), False
                answer, told_at = await self._open(sending), inf
                try:
                    await self._ways.accepted()
                    events = turn.accepted()
                    if events:
                        yield self._record(events)
                    while not turn.broken and (deltas := await self._wait(anext(answer, None))) is not None:
                        events = turn.feed(deltas)
                        if events:
                            now = monotonic()
                            life.longest_gap, told_at = max(life.longest_gap, now - told_at), now
                            life.batches += 1
                            if life.batches >= life.due:
                                life.mark(events[-1]["type"])
                            if self.recorder is not None:
                                self.recorder.add(events)
                            yield events
                        while (check := turn.pending) is not None:
                            turn.checked(await self._wait(self._checker.check(check.job)))
                            # Not kept for the next check: a sign of life meanwhile would overtake them.
                            yield self._record(turn.feed(()))
                finally:
                    self._spend.heard(turn, command.body)
                    await sending.__aexit__(None, None, None)
                command = await self._end()
                if isinstance(command, Send) and (events := turn.feed(())):
                    yield self._record(events)  # likewise: the model may take its time
            done = command
            self._note_failure(done)
        except GeneratorExit:  # the reader is gone, for whatever reason: nothing can be handed out any more
            await self._finish(self._stopped(gone=True))
            raise
        except (asyncio.CancelledError, Stopped) as end:
            if isinstance(end, asyncio.CancelledError) and self._stop in (None, "left"):
                await self._finish(turn.cancel(self._time()))
                raise
            done = self._stopped()
        except Exception as error:
            done = self._failed(error)
        yield (await self._finish(done)).events

    async def _send(self, command: Send, *, anew: bool) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        if self.stopping():
            raise Stopped
        if self._review is not None:
            attempt = self._life.attempts + anew
            command = await self._wait(self._review.before_send(self._ways, command, attempt))
        plan = self._turn.plan
        backend, behalf = self._ways.current.backend, self._behalf
        self._life.sent(plan, anew=anew, why=command.why, body=command.body, key=key_for(backend, behalf))
        self._spend.sent(plan.target)
        return backend.send(plan, command.body, behalf)

    async def _open(
        self, sending: AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]
    ) -> AsyncIterator[Sequence[Delta]]:
        try:
            answer = await self._wait(sending.__aenter__())
        finally:
            self._life.asked_again(self._turn.plan, trail_of(sending))
        self._life.accepted()
        self._answering = sending
        return answer

    async def _end(self) -> Done | Send | RunTool:
        turn, before = self._turn, len(self._turn.settled)
        self._life.over()
        while isinstance(command := await self._do(lambda: turn.end(self._time())), Check):
            turn.checked(await self._wait(self._checker.check(command.job)))
        self._life.checked(turn.settled[before:])
        return command

    async def _do(self, work: Callable[[], _T]) -> _T:
        """What may plan the request once more: of a large one, aside."""
        if self._aside is None or not self.plan.size:
            return work()
        self._at_work = True
        try:
            return await self._aside.do(work, heavy=True)
        finally:
            self._at_work = False

    async def _wait(self, awaitable: Awaitable[_T]) -> _T:
        """Wait on the upstream: the only place where `stop` cancels the reader's task."""
        if self.stopping():
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise Stopped
        self._waiting = asyncio.current_task()
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self.stopping() and self._waiting is not None:
                self._waiting.uncancel()
            raise
        finally:
            self._waiting = None

    # ── the end ────────────────────────────────────────────────────────────────────────────────────

    def _failed(self, error: Exception) -> Done:
        """The end that it makes of what was told; of nothing there is none: there may be another way, or a status."""
        failure = self._explain(error)
        if not self._turn.started:
            raise Refused(failure) from error
        return self._turn.fail(failure, self._time())

    def _explain(self, error: Exception) -> IsthmusError:
        """Whatever rose, as a failure that a client may read."""
        failure = error if isinstance(error, IsthmusError) else None
        if failure is None:
            tell(log, "error", "response.broken", id=self.id, trace=error)
            self.bug = error
            words = "the gateway failed while it made this response; its log says more"
            # A Response has no word for whose bug it was; an HTTP answer does.
            inside = self._turn.started or self.tells_refusals
            failure = UpstreamFailed(words) if inside else IsthmusError(words, code="internal_error")
        content, locate = failure.metadata.get("content"), self._ways.current.locate
        if content is not None and failure.param is None and locate is not None:
            failure.param = locate(content)
        self._life.failed(self.plan, failure)
        return failure

    def _note_failure(self, done: Done) -> None:
        """An answer that says itself that it failed is a failed attempt, like one that broke off."""
        error = done.response["error"]
        if error is not None:
            self._life.failed(self.plan, done.failure or UpstreamFailed(error["message"], code=error["code"]))

    def _stopped(self, *, gone: bool = False) -> Done:
        match self._stop:
            case "shutdown":
                failure = UpstreamFailed("the gateway is shutting down; try again", code="server_is_overloaded")
            case "timeout":
                failure = UpstreamFailed("the response took longer than allowed", code="upstream_timeout")
                if not (self._turn.started or gone):
                    raise Refused(failure)  # nothing was told yet: it still has its HTTP status
            case "steered":
                return self._turn.steer_out(self._time())
            case "lost":
                failure = UpstreamFailed("another gateway has taken this response over", code="server_error")
            case _:
                return self._turn.cancel(self._time())
        return self._turn.fail(failure, self._time())

    async def _finish(self, done: Done) -> Done:
        """Settled, looked at and saved, then told: whoever hears of the end may ask again at once, and what could not
        be kept must not be believed to be."""
        self._spend.settle()
        if self._review is not None:
            done = await self._review.after_reply(self._ways, self._turn, done)
        self._record(done.events)
        try:
            if self._save is not None:
                # What was lost must not even try: whoever took it over may not have written yet.
                saved = None if self._stop == "lost" else await self._save(done, self.plan)
                self.lost = saved is None
                done = saved or done.unkept("server_error", "another gateway has taken this response over")
        except Exception as error:
            known = isinstance(error, IsthmusError)
            tell(log, "error", "response.save.failed", id=self.id, reason=error, trace=None if known else error)
            code, why = (error.code, str(error)) if isinstance(error, IsthmusError) else ("internal_error", "a bug")
            done = done.unkept(code, f"the response could not be stored: {why}")
        self.response, self.written = done.response, done.written
        self.failure = done.failure
        return done

    def _time(self) -> int:
        return int(self._now())

    def ended(self) -> Ended:
        """The life of this run in one fact."""
        done = self.response
        outcome, usage = ("refused", None) if done is None else (done["status"], done["usage"])
        return self._life.whole(
            self.plan,
            outcome,
            usage,
            self.failure,
            background=self.tells_refusals,
            events=self._turn.told,
            response=done,
        )
