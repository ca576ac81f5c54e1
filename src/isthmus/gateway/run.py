"""One response on its way: the short loop that carries out what the turn commands.

    Send  → call the backend, feed its deltas back
    Done  → save, then hand out the terminal event

It ends in exactly one terminal event, whatever happens: the upstream's end, its error, a timeout, a
cancel, a shutdown. Events are handed out in batches, pulled by whoever reads: a slow reader slows the
upstream down, nothing is queued. A reader that goes away closes the iterator: the upstream connection is
closed at once, and what there was is saved as cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal, TypeVar

from isthmus.bridge.assemble.emitter import Event
from isthmus.bridge.plan import Plan
from isthmus.bridge.turn import Done, Send, Turn
from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.ports import Backend
from isthmus.protocol.json import JsonObject

log = logging.getLogger("isthmus.gateway")

Stop = Literal["cancelled", "left", "shutdown", "timeout"]
Save = Callable[[JsonObject], Awaitable[None]]
"""Makes a finished response durable."""

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

    async def none(self) -> None:
        await self._none.wait()


class Run:
    """A turn with its backend and its store. Iterate `events` once."""

    def __init__(
        self,
        id: str,
        plan: Plan,
        turn: Turn,
        backend: Backend,
        *,
        running: Running,
        save: Save,
        now: Callable[[], float],
        total_timeout: float | None = None,
    ) -> None:
        self.id = id
        self.plan = plan
        self._running = running
        self._turn = turn
        self._backend = backend
        self._save = save
        self._now = now
        self._total = total_timeout
        self._waiting: asyncio.Task[object] | None = None
        self._stop: Stop | None = None
        self.response: JsonObject | None = None
        """The finished Response object, once there is one."""
        self.failure: UpstreamFailed | None = None

    @property
    def finished(self) -> bool:
        return self.response is not None

    def _stopping(self) -> bool:
        return self._stop is not None

    def queued(self) -> JsonObject:
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

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Batches of events, the last of which ends with the terminal one.

        Raises `UpstreamFailed` if the upstream refuses before anything was told: that failure still has
        its HTTP status.
        """
        self._running.add(self)
        timer = None
        if self._total is not None:
            timer = asyncio.get_running_loop().call_later(self._total, self.stop, "timeout")
        try:
            async for batch in self._steps():
                yield batch
        finally:
            if timer is not None:
                timer.cancel()
            self._running.remove(self)

    async def fold(self) -> JsonObject:
        """The whole answer: the same events, not looked at."""
        async for _ in self.events():
            pass
        assert self.response is not None
        return self.response

    async def refused(self, failure: UpstreamFailed) -> list[Event]:
        """The upstream refused before anything was told, and nobody is there for an HTTP status: say it here."""
        done = self._turn.fail(failure, self._time())
        await self._finish(done)
        return done.events

    async def _steps(self) -> AsyncGenerator[list[Event], None]:
        turn = self._turn
        command: Send | Done = turn.begin()
        try:
            while isinstance(command, Send):
                sending = self._backend.send(self.plan, command.body)
                answer = await self._wait(sending.__aenter__())
                try:
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
                finally:
                    await sending.__aexit__(None, None, None)
                command = turn.end(self._time())
            done = command
        except (asyncio.CancelledError, GeneratorExit):
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
        await self._finish(done)
        yield done.events

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
        else:
            return self._turn.cancel(self._time())
        return self._turn.fail(failure, self._time())

    async def _finish(self, done: Done) -> None:
        response = done.response
        try:
            await self._save(response)
        except IsthmusError as error:
            # What was promised to be kept is not: the client must not believe otherwise.
            log.error("response.save.failed id=%s reason=%s", response["id"], error)
            response["status"] = "failed"
            response["error"] = {"code": error.code, "message": f"the response could not be stored: {error}"}
            done.events[-1]["type"] = "response.failed"
        self.response = response
        self.failure = done.failure

    def _time(self) -> int:
        return int(self._now())
