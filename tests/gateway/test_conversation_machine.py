"""Turns, changes by hand, deletions and reads of one conversation, through two gateways, driven by chance.

Whatever happens (turns that end, fail, are left, are made in the background or not stored; gateways that crash, or
sleep for longer than a lock lasts): what is seen of the conversation is what it would be if all of it had happened one
after the other. A turn is told everything that was in it and nothing else, and what it says stands right behind that;
or it says nothing, and its client is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.house import Asked, start, start_in_background
from gateway.world import ANN, LEASE, Process, World
from isthmus.conduct.run import Run
from isthmus.errors import IsthmusError, UpstreamFailed
from stored import ids

MODES = ("streamed", "streamed", "background", "unstored")


@dataclass(eq=False)
class Turn:
    number: int
    mode: str
    process: Process
    conversation: str
    before: list[str]
    """What was in the conversation when it was begun."""
    id: str
    asked: Asked
    run: Run | None = None
    task: asyncio.Task[None] | None = None
    slept: bool = False
    """Whether its lock may have run out meanwhile."""
    end: Any = None
    answered: str | None = None
    events: list[Any] = field(default_factory=list)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"{self.mode} turn {self.number}")

    async def read(self) -> None:
        assert self.run is not None
        with suppress(IsthmusError):
            async with aclosing(self.run.events()) as batches:
                async for batch in batches:
                    self.events += batch


class Talk(RuleBasedStateMachine):
    kind: ClassVar[str] = "memory"

    draw: Callable[[Any, str], Any]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.kind)
        self.processes = [self.world.begin(), self.world.begin()]
        self.count = 0
        self.turns: list[Turn] = []
        self.free_at = 0.0
        """When a lock that a dead gateway left behind has run out."""
        self.said: list[str] = []
        self.id = self.new()

    # ── what may happen ────────────────────────────────────────────────────────────────────────────

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        self.draw = lambda things, label: data.draw(st.sampled_from(things), label)
        able = [
            *(["end"] * 5 + ["fail", "leave", "sleep"] if self.turns else []),
            *["begin"] * 4,
            *["put_in"] * 2,
            *(["take_out"] if self.said else []),
            *["crash", "end_it", "pass_time"],
        ]
        getattr(self, self.draw(able, "deed"))()

    def begin(self) -> None:
        mode, process = self.draw(MODES, "mode"), self.processes[self.draw((0, 1), "process")]
        self.count += 1
        asked: dict[str, Any] = {"input": f"ask {self.count}", "conversation": self.id}
        count = len(self.world.upstream.asked)
        if mode == "background":
            made = self.ask(process, start_in_background(process.gateway, ANN, **asked))
        else:
            made = self.ask(process, start(process.gateway, ANN, **asked, store=mode != "unstored"))
        if not self.accepted(made):
            return
        run = made if isinstance(made, Run) else None
        id = made if run is None else run.id
        turn = Turn(self.count, mode, process, self.id, [*self.said], id, None, run)  # type: ignore[arg-type]
        if run is not None:
            turn.task = self.world.spawn(process, turn.read(), f"reader {id}")
        self.world.quiet()
        (turn.asked,) = self.world.upstream.asked[count:]
        # Two answers in a row, because what stood between them was taken out, are one message for a chat model.
        told = "\n\n".join(message["content"] for message in turn.asked.body["messages"]).split("\n\n")
        assert told == [*self.said, f"ask {self.count}"], "the model is told what is in the conversation"
        self.turns.append(turn)

    def end(self) -> None:
        turn = self.draw(self.turns, "turn")
        turn.answered = f"answer {turn.number}"
        turn.asked.end(turn.answered)
        self.over(turn)

    def fail(self) -> None:
        """The provider, and the one that takes its place."""
        turn = self.draw(self.turns, "turn")
        while mine := [asked for asked in self.world.upstream.open if asked.task is turn.asked.task]:
            mine[0].fail(UpstreamFailed("out of order"))
            self.world.quiet()
        self.over(turn)

    def leave(self) -> None:
        turn = self.draw(self.turns, "turn")
        if turn.run is not None:
            turn.run.stop("left")
        else:
            self.ask(turn.process, turn.process.gateway.cancel(ANN, turn.id))
        self.over(turn)

    def sleep(self) -> None:
        """A gateway sleeps for longer than its locks last; the other one goes on meanwhile."""
        turn = self.draw(self.turns, "turn")
        process, other = turn.process, next(each for each in self.processes if each is not turn.process)
        process.wire.thaw = asyncio.Event()
        for each in self.turns:
            each.slept = each.slept or each.process is process
        ends = self.draw((True, False), "ends")
        if ends:
            turn.answered = f"answer {turn.number}"
            turn.asked.end(turn.answered)
        self.world.flow(LEASE + 1)
        for _ in range(self.draw((0, 1, 2), "meanwhile")):
            self.put_in(other)
        process.wire.wake()
        self.world.quiet()
        if ends:
            self.over(turn)

    def put_in(self, process: Process | None = None) -> None:
        process = process or self.processes[self.draw((0, 1), "process")]
        self.count += 1
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"put {self.count}"}]}
        if self.accepted(self.ask(process, process.gateway.conversations.add(ANN, self.id, [item]))):
            self.said.append(f"put {self.count}")

    def take_out(self) -> None:
        process, index = self.processes[self.draw((0, 1), "process")], self.draw(range(len(self.said)), "which")
        page = self.world.look(self.world.store.conversation_items(self.id, owner="ann", limit=1000, order="asc"))
        if self.accepted(self.ask(process, process.gateway.conversations.remove(ANN, self.id, ids(page.items)[index]))):
            del self.said[index]

    def end_it(self) -> None:
        """It is deleted, also while a turn is under way; another one takes its place."""
        process = self.processes[self.draw((0, 1), "process")]
        assert self.ask(process, process.gateway.conversations.delete(ANN, self.id)) is None
        self.said, self.free_at = [], 0.0
        self.id = self.new()

    def crash(self) -> None:
        which = self.draw((0, 1), "which")
        process = self.processes[which]
        self.world.kill(process)
        if any(turn.process is process and turn.conversation == self.id for turn in self.turns):
            self.free_at = self.world.loop.time() + LEASE
        self.turns = [turn for turn in self.turns if turn.process is not process]
        self.processes[which] = self.world.begin()

    def pass_time(self) -> None:
        self.world.flow(self.draw((1.0, LEASE / 2, LEASE + 1), "seconds"))
        for turn in [*self.turns]:
            if turn.run is not None and turn.task is not None and turn.task.done():
                self.over(turn)  # it took too long

    # ── what must hold ─────────────────────────────────────────────────────────────────────────────

    @invariant()
    def it_is_what_was_said_one_after_the_other(self) -> None:
        for order, expected in (("asc", self.said), ("desc", self.said[::-1])):
            seen: list[str] = []
            after, more = None, True
            while more:
                page = self.world.look(
                    self.world.store.conversation_items(self.id, owner="ann", limit=3, after=after, order=order)
                )
                seen += words(page.items)
                after, more = page.last_id, page.has_more
            assert seen == expected

    def accepted(self, answer: Any) -> bool:
        """Whether a change was let in; with a turn under way it must not be, and without one it must."""
        here = [turn for turn in self.turns if turn.conversation == self.id]
        if isinstance(answer, IsthmusError):
            assert answer.code == "conversation_locked", answer
            assert here or self.world.loop.time() < self.free_at, "nobody holds it"
            return False
        assert all(turn.slept for turn in here), "two at the same time"
        assert self.world.loop.time() >= self.free_at
        return True

    def over(self, turn: Turn) -> None:
        """A turn has ended: either it is in the conversation, or its client knows that it is not."""
        self.world.quiet()
        self.turns.remove(turn)
        status, code = self.outcome(turn)
        adds = turn.answered is not None and turn.mode != "unstored"
        if turn.answered is None:
            assert status != "completed"
        elif adds and turn.conversation == self.id and turn.before != self.said:
            assert turn.slept
            assert (status, code) == ("failed", "conversation_moved"), "it says nothing, and that is told"
        elif turn.answered is not None and not turn.slept:
            assert status == "completed"
        if status == "completed" and adds and turn.conversation == self.id:
            self.said += [f"ask {turn.number}", turn.answered or ""]

    def outcome(self, turn: Turn) -> tuple[str | None, str | None]:
        end = turn.events[-1]["response"] if turn.events and "response" in turn.events[-1] else None
        if turn.run is None:
            found = self.world.look(self.world.store.load(turn.id, owner="ann"))
            end = msgspec.json.decode(found.response)
        return (None, None) if end is None else (end["status"], (end["error"] or {}).get("code"))

    def ask(self, process: Process, work: Any) -> Any:
        async def answered() -> Any:
            try:
                return await work
            except IsthmusError as error:
                return error

        return self.world.flow_until(self.world.spawn(process, answered()), 2 * LEASE)

    def new(self) -> str:
        made: str = self.ask(self.processes[0], self.processes[0].gateway.conversations.create(ANN, [], {})).id
        return made

    def teardown(self) -> None:
        self.world.close()


def words(items: tuple[bytes, ...]) -> list[str]:
    said = [msgspec.json.decode(item)["content"] for item in items]
    return [each if isinstance(each, str) else each[0]["text"] for each in said]


class TalkOnSqlite(Talk):
    kind = "sqlite"


class TalkOnPostgres(Talk):
    kind = "postgres"


_steps = settings(stateful_step_count=30, suppress_health_check=list(HealthCheck))
_few = settings(_steps, max_examples=60) if settings().derandomize else _steps
TestTalk, TestTalkOnSqlite, TestTalkOnPostgres = Talk.TestCase, TalkOnSqlite.TestCase, TalkOnPostgres.TestCase
TestTalk.settings = TestTalkOnSqlite.settings = _few
TestTalkOnPostgres.settings = settings(_few, max_examples=5) if settings().derandomize else _few
