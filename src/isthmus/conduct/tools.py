"""The calls of one reply that run here, carried out: several at once, each within its time.

In: calls, and who runs their kinds. Out: facts about them, in the order in which they happen, to be pulled. A call has
exactly one end, whatever its runner does: one that fails, takes too long or is our own bug is a result that says so.
Leaving stops whatever still runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from isthmus.bridge.commands import RunTool
from isthmus.bridge.tools.managed import failed_fields
from isthmus.bridge.turn import Turn
from isthmus.bridge.types.managed import ManagedCall, ManagedKind, Ran, ToolLimits
from isthmus.conduct.hosted import Hosted
from isthmus.log import Level, tell
from isthmus.ports import Behalf
from isthmus.ports.tools import ToolRunner, patience_of
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject

log = logging.getLogger("isthmus.conduct")

_MAX_STEPS: Final = 256
"""Words about progress that wait to be read; more are dropped, for the next ones say more."""
_LAST_WORDS: Final = 5.0
"""Seconds that runners have to let go once they are stopped."""


@dataclass(frozen=True, slots=True)
class Began:
    id: str


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    word: str
    fields: JsonObject


@dataclass(frozen=True, slots=True)
class Ended:
    call: ManagedCall
    ran: Ran | None
    """`None`: it was stopped."""
    seconds: float


Fact = Began | Step | Ended
Wait = Callable[[Awaitable[list[Fact]]], Awaitable[list[Fact]]]
"""Waits, unless whoever waits is told to stop."""


Heard = Callable[[ManagedCall, Ran | None, float], None]
"""Hears of each call that was begun, what became of it, and how long it took."""


async def run_tools(
    turn: Turn, command: RunTool, hosted: Hosted, behalf: Behalf, wait: Wait, heard: Heard
) -> AsyncGenerator[list[Event], None]:
    """Carry these calls out, and tell how far they are; whoever stops listening stops them."""
    if events := turn.feed(()):
        yield events
    work = Work(command.calls, lambda kind: hosted.runner(kind, behalf), hosted.limits)
    try:
        async with work:
            while facts := await wait(work.news()):
                if events := _tell(turn, facts, heard):
                    yield events
    finally:
        for fact in work.untold():
            heard(fact.call, fact.ran, fact.seconds)


def _tell(turn: Turn, facts: Sequence[Fact], heard: Heard) -> list[Event]:
    events: list[Event] = []
    for fact in facts:
        match fact:
            case Began(id):
                events += turn.began(id)
            case Step(id, word, fields):
                events += turn.progress(id, word, fields)
            case Ended(call, ran, seconds):
                heard(call, ran, seconds)
                if ran is not None:
                    events += turn.ran(call.id, ran)
    return events


class Work:
    def __init__(
        self, calls: Sequence[ManagedCall], runner: Callable[[ManagedKind], ToolRunner], limits: ToolLimits
    ) -> None:
        self._calls, self._runner, self._limits = calls, runner, limits
        self._places = asyncio.Semaphore(limits.parallel)
        self._facts: list[Fact] = []
        self._left = len(calls)
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._carry_out(call), name=f"tool {call.id}") for call in self._calls]
        return self

    async def __aexit__(self, *_: object) -> None:
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            _done, stuck = await asyncio.wait(running, timeout=_LAST_WORDS)
            for task in stuck:
                tell(log, "error", "tool.stuck", task=task.get_name())

    async def news(self) -> list[Fact]:
        """What has happened since; nothing: all calls have ended, and that was told."""
        while not self._facts and self._left:
            self._news.clear()
            await self._news.wait()
        facts, self._facts = self._facts, []
        return facts

    def untold(self) -> list[Ended]:
        """Ends that nobody has asked for: of calls that were stopped, and of those that came too late."""
        return [fact for fact in self._facts if isinstance(fact, Ended)]

    async def _carry_out(self, call: ManagedCall) -> None:
        now = asyncio.get_running_loop().time
        async with self._places:
            self._say(Began(call.id))
            begun = now()
            try:
                ran = await self._run(call)
            except asyncio.CancelledError:
                self._say(Ended(call, None, now() - begun))
                raise
        took = now() - begun
        level: Level = "warning" if ran.failed else "info"
        tell(log, level, "tool.ended", id=call.id, kind=call.kind, name=call.name, failed=ran.failed, seconds=took)
        self._left -= 1
        self._say(Ended(call, ran, took))

    async def _run(self, call: ManagedCall) -> Ran:
        def hear(word: str, fields: JsonObject) -> None:
            if len(self._facts) < _MAX_STEPS:
                self._say(Step(call.id, word, fields))

        seconds = self._limits.timeout
        try:
            runner = self._runner(call.kind)
            seconds = patience_of(runner, seconds)
            async with asyncio.timeout(seconds):
                return await runner.run(call, hear)
        except TimeoutError:
            return _failed(call, f"it took longer than {seconds:g} seconds")
        except Exception as error:  # a runner raises nothing: this is a bug, and no reason to end the response
            tell(log, "error", "tool.broken", id=call.id, kind=call.kind, name=call.name, trace=error)
            return _failed(call, "the server that runs it failed")

    def _say(self, fact: Fact) -> None:
        self._facts.append(fact)
        self._news.set()


def _failed(call: ManagedCall, words: str) -> Ran:
    return Ran(f"[it failed: {words}]", failed_fields(call.kind, words), failed=True)
