"""One run with its upstream and those who watch it: no gateway, no store, and a time of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, Final

from gateway.house import Asked, Heard, Upstream
from isthmus.bridge.lessons import learn, leave_out
from isthmus.bridge.parse import parse_request
from isthmus.bridge.plan import plan_request
from isthmus.bridge.turn import Done, Turn
from isthmus.bridge.types.plan import Host, Lesson, Plan, Target
from isthmus.conduct.around import Stop
from isthmus.conduct.attempt import Attempt
from isthmus.conduct.hosted import NO_TOOLS
from isthmus.conduct.run import Run
from isthmus.ports import Behalf, Checker, Ended
from isthmus.protocol.events import Event
from isthmus.providers import load_provider
from isthmus.testing.checker import InlineChecker
from own_time import OwnTime

TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")
STOPS: Final[tuple[Stop, ...]] = ("cancelled", "left", "shutdown", "timeout", "lost")
_CAPABILITIES: Final = load_provider("openai-compatible").capabilities("m")


class Stage(OwnTime):
    def __init__(self) -> None:
        super().__init__()
        self.upstream = Upstream()
        self.heard = Heard()
        self.story: list[str] = []
        """What others saw of the run, in order."""
        self.events: list[Any] = []
        """What its reader was told."""
        self.saved: list[Done] = []
        self.save_as: Callable[[Done], Done | None] = lambda done: done
        self.saving: asyncio.Event | None = None
        """What a save waits for."""
        self.host = Host()
        self.hosted = NO_TOOLS

    def attempt(self, name: str, body: dict[str, Any], dropped: frozenset[str] = frozenset()) -> Attempt:
        target = leave_out(Target(name, "m", _CAPABILITIES), dropped)
        plan = plan_request(parse_request({"model": f"{name}/m", "input": "hi", **body}), target, self.host)
        turn = Turn(plan, response_id="resp_1", now=int(self.loop.time()))

        def without(lesson: Lesson) -> Attempt:
            learn(target, [lesson])
            return self.attempt(name, body, dropped | {lesson.parameter})

        return Attempt(plan, turn, self.upstream, without)

    def run_of(
        self,
        *names: str,
        others: Iterable[Attempt] | None = None,
        stored: bool = True,
        background: bool = False,
        total: float | None = None,
        checker: Checker | None = None,
        keep: Any = None,
        **body: Any,
    ) -> Run:
        """A run at the first of these providers, the others being its fallbacks."""
        body = {"stream": True, **body}
        first, *rest = names or ("one",)
        run = Run(
            "resp_1",
            self.attempt(first, body),
            others=iter(others) if others is not None else (self.attempt(name, body) for name in rest),
            behalf=Behalf("ann"),
            checker=checker or InlineChecker(),
            now=self.loop.time,
            save=self._save if stored else None,
            keep=keep,
            track=self,
            observer=self.heard,
            total_timeout=total,
            hosted=self.hosted,
        )
        run.tells_refusals = background
        return run

    def read(self, run: Run, *, slowly: asyncio.Event | None = None) -> asyncio.Task[None]:
        """Have a reader take its events; a slow one waits behind each batch."""

        async def read() -> None:
            async with aclosing(run.events()) as batches:
                async for batch in batches:
                    self.events += batch
                    self.story += [f"told {event['type']}" for event in batch if event["type"] in TERMINAL]
                    if slowly is not None:
                        await slowly.wait()

        return self.launch(read())

    @property
    def asked(self) -> Asked:
        """The request that is open at the upstream."""
        (asked,) = self.upstream.open
        return asked

    @property
    def end(self) -> Ended:
        """The one fact that tells its whole life, behind all others."""
        *before, last = self.heard.facts
        assert isinstance(last, Ended)
        assert not any(isinstance(fact, Ended) for fact in before)
        return last

    @property
    def terminal(self) -> list[Any]:
        return [event for event in self.events if event["type"] in TERMINAL]

    # what a run asks of those around it

    async def _save(self, done: Done, plan: Plan) -> Done | None:
        self.saved.append(done)
        if self.saving is not None:
            await self.saving.wait()
        kept = self.save_as(done)
        self.story.append(f"saved {done.response['status']} by {plan.target.provider}")
        return kept

    def begun(self, run: Run) -> None:
        self.story.append("begun")

    def over(self, run: Run) -> None:
        self.story.append("over")


class Noted:
    """A recorder."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, events: Sequence[Event]) -> None:
        self.events += events
