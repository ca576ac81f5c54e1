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
from typing import TYPE_CHECKING, TypeVar

from isthmus.bridge.commands import Check, Done, RunTool, Send
from isthmus.bridge.deltas import Delta
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.around import Recorder, Save, Stopped, Track
from isthmus.conduct.aside import Aside
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.ends import explain, keep, stopped, too_long
from isthmus.conduct.hosted import NO_TOOLS, Hosted
from isthmus.conduct.life import Life
from isthmus.conduct.spend import Gate, Spend
from isthmus.conduct.stopping import Stoppable
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

_T = TypeVar("_T")


class Run(Stoppable):
    """A turn with its backend. Iterate `events` once; `others` are the ways to try when the first fails in time."""

    __slots__ = (
        *("__weakref__", "_answering", "_aside", "_at_work", "_behalf", "_checker", "_hosted", "_life", "_now"),
        *("_refused", "_release", "_review", "_save", "_spend", "_track", "_ways", "asked", "bug", "failure", "id"),
        *("lost", "owner", "recorder", "response", "tells_refusals", "written"),
    )

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
        super().__init__(total_timeout)
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
        self._aside = aside
        self._release = release
        self._hosted = hosted
        self._spend = Spend(gate)
        self._review = review
        self._at_work = False
        """Whether the turn is worked on aside: nobody else may touch it."""
        self._answering: object = None
        """What the upstream accepted last."""
        self.response: FinishedResponse | None = None
        """The finished Response object, once there is one."""
        self.written: bytes | None = None
        """The same as JSON, where it was written to be kept, and is small."""
        self._refused: IsthmusError | None = None
        self.failure: IsthmusError | None = None
        self.bug: Exception | None = None
        """What rose that nobody raised on purpose."""
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

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Batches of events, the last of which ends with the terminal one.

        Raises what failed before anything was told, unless the run `tells_refusals`.
        """
        self._begin_reading()
        review = self._review
        if self._track is not None:
            self._track.begun(self)
        if review is not None:
            self.recorder = review.begin(self.recorder)
        try:
            failure = await self._spend.enter(self.plan)
            while failure is None:
                async with aclosing(self._steps()) as steps:
                    async for batch in steps:
                        if review is None or (batch := review.take(batch)):
                            yield batch
                failure = self._refused
                if failure is None:
                    return
                if not self.stopping() and await self._goes_on_after(failure):
                    failure = None
            self.failure = failure
            if not self.tells_refusals:
                raise failure
            yield await self.tell(failure)
        finally:
            self._end_reading()
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
        """One attempt; `_refused` is why it failed, where nothing was told."""
        turn, life, anew = self._turn, self._life, True
        note = _forget if self.recorder is None else self.recorder.add
        end: Done | IsthmusError
        try:
            command = turn.begin(self._time())
            while not isinstance(command, Done):
                if isinstance(command, RunTool):
                    tools = run_tools(turn, command, self._hosted, self._behalf, self._wait, life.ran)
                    async with aclosing(tools) as told:
                        async for events in told:
                            yield self._record(events)
                    command = await self._end()
                    continue
                sending, anew = await self._send(command, anew=anew), False
                answer = await self._open(sending)
                try:
                    await self._ways.accepted()
                    if events := turn.accepted():
                        yield self._record(events)
                    while (deltas := await self._wait(anext(answer, None))) is not None:
                        if events := turn.feed(deltas):
                            life.told(events)
                            note(events)
                            yield events
                        while isinstance(halt := turn.halt, Check):
                            turn.checked(await self._wait(self._checker.check(halt.job)))
                            # Not kept for the next check: a sign of life meanwhile would overtake them.
                            yield self._record(turn.feed(()))
                        if halt is not None:
                            break
                finally:
                    self._spend.heard(turn, command.body)
                    await sending.__aexit__(None, None, None)
                command = await self._end()
                if isinstance(command, Send) and (events := turn.feed(())):
                    yield self._record(events)  # likewise: the model may take its time
            end = command
            self._note_failure(command)
        except GeneratorExit:  # the reader is gone, for whatever reason: nothing can be handed out any more
            await self._finish(stopped(self._stop, turn, self._time()))
            raise
        except (asyncio.CancelledError, Stopped) as why:
            if isinstance(why, asyncio.CancelledError) and self._stop in (None, "left"):
                await self._finish(turn.cancel(self._time()))
                raise
            end = self._stopped()
        except Exception as error:
            end = self._failed(error)
        self._refused = None if isinstance(end, Done) else end
        if isinstance(end, Done):
            yield (await self._finish(end)).events

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

    # ── the end ────────────────────────────────────────────────────────────────────────────────────

    def _stopped(self) -> Done | IsthmusError:
        """A response that took too long, and has told nothing yet, still has its HTTP status."""
        if self._stop == "timeout" and not self._turn.started:
            return too_long()
        return stopped(self._stop, self._turn, self._time())

    def _failed(self, error: Exception) -> Done | IsthmusError:
        """The end that it makes of what was told; of nothing there is none: there may be another way, or a status."""
        turn = self._turn
        failure = explain(error, self.id, self._ways.current, inside=turn.started or self.tells_refusals)
        if not isinstance(error, IsthmusError):
            self.bug = error
        self._life.failed(self.plan, failure)
        if turn.started:
            return turn.fail(failure, self._time())
        failure.__cause__ = None if failure is error else error
        return failure

    def _note_failure(self, done: Done) -> None:
        """An answer that says itself that it failed is a failed attempt, like one that broke off."""
        error = done.response["error"]
        if error is not None:
            self._life.failed(self.plan, done.failure or UpstreamFailed(error["message"], code=error["code"]))

    async def _finish(self, done: Done) -> Done:
        """Settled, looked at and saved, then told: whoever hears of the end may ask again at once."""
        self._spend.settle()
        if self._review is not None:
            done = await self._review.after_reply(self._ways, self._turn, done)
        self._record(done.events)
        if self._save is not None:
            done, self.lost = await keep(done, self.id, self.plan, self._save, self._stop)
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
            written=self.written,
        )


def _forget(events: Sequence[Event]) -> None:
    """Nobody takes note of them."""
