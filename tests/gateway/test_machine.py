"""Two gateways on one store, driven by chance in a time of their own, against what a client may see.

Whatever happens (streams, cancels, deletes, clients that leave or do not read, upstreams and stores that fail, crashes,
restarts, jumps of the clock): exactly one terminal event; what a client saw as the end is stored so; nothing stays
unfinished longer than its lease; nothing crosses owners; every end in the background is queued for receivers, once;
nothing is left open. A failure prints the steps that lead to it, and the same steps lead to it again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.house import Asked, start, start_in_background
from gateway.world import LEASE, LIMITS, Process, World
from isthmus.bridge.deltas import Text
from isthmus.conduct.run import Run
from isthmus.errors import ConfigError, IsthmusError, UpstreamFailed
from isthmus.gateway.caller import Caller
from isthmus.ports import UNFINISHED

OWNERS = ("ann", "bob")
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
RANK = {"queued": 0, "in_progress": 1}
"""A status never goes back; what has ended stays as it ended."""
DISTURBANCES = (
    "writes",
    "all",
    "mend",
    "mend",
    "sleep",
    "sleep",
    "miss",
    "miss",
    "crash",
    "crash",
    "shut down",
    "shut down",
    "hour",
)


class _Gone(Exception):
    """The client closed its connection."""


@dataclass(eq=False)
class Reader:
    """A client with a stream: of a response of its own (`run`), or of one that is made in the background."""

    owner: str
    id: str
    process: Process
    run: Run | None = None
    first: int = 0
    slow: bool = False
    """It does not read on before it is told to."""
    task: asyncio.Task[None] | None = None
    events: list[Any] = field(default_factory=list)
    refused: IsthmusError | None = None
    left: bool = False
    go: asyncio.Event = field(default_factory=asyncio.Event)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"{'follower' if self.run is None else 'reader'} of {self.id}")

    @property
    def done(self) -> bool:
        return self.task is not None and self.task.done()

    @property
    def cut(self) -> bool:
        return self.left or self.process.dead or (self.run is not None and self.run.abandoned)

    @property
    def end(self) -> Any:
        return next((event["response"] for event in self.events if event["type"] in TERMINAL), None)

    async def took(self, events: list[Any]) -> None:
        self.events += events
        if self.slow and not self.left:
            await self.go.wait()
            self.go.clear()
        if self.left:
            raise _Gone

    async def read(self) -> None:
        assert self.run is not None
        with suppress(_Gone):
            try:
                async with aclosing(self.run.events()) as batches:
                    async for batch in batches:
                        await self.took(batch)
            except IsthmusError as error:
                self.refused = error

    async def follow(self) -> None:
        with suppress(_Gone):
            try:
                gateway = self.process.gateway
                following: Any = await gateway.follow(Caller(self.owner), self.id, self.first - 1)
                async with aclosing(following) as batches:
                    async for batch in batches:
                        await self.took([json.loads(event) for event in batch])
            except IsthmusError as error:
                self.refused = error


@dataclass(eq=False)
class Call:
    """Something that a client asked for; the answer may take its time."""

    deed: str
    owner: str
    id: str
    process: Process
    task: asyncio.Task[Any]
    began: float
    troubled: bool


@dataclass
class Row:
    """What is known of a background response."""

    owner: str
    process: Process
    seen: str = "queued"
    troubled: bool = False
    told: dict[int, Any] = field(default_factory=dict)


class House(RuleBasedStateMachine):
    kind: ClassVar[str] = "memory"

    draw: Callable[[Any, str], Any]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.kind)
        self.processes: list[Process] = [self.world.begin(), self.world.begin()]
        self.readers: list[Reader] = []
        self.followers: list[Reader] = []
        self.calls: list[Call] = []
        self.rows: dict[str, Row] = {}
        self.deleted: set[str] = set()
        self.flowed = LEASE
        """Seconds that have gone by since the clock last jumped: by then all leases are renewed."""

    # ── what may happen ────────────────────────────────────────────────────────────────────────────

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """One rule that draws the deed, not one rule for each: hypothesis would leave most of them out in each run."""
        self.draw = lambda things, label: data.draw(st.sampled_from(things), label)
        able = [
            *(["answer"] * 6 + ["fail"] if self.world.upstream.open else []),
            *(["follow"] * 3 if self.rows else []),
            *(["read_on_or_leave"] * 2 if self.reading else []),
            *(["call"] * 2 + ["call_by_a_stranger"] if self.ids() else []),
            *["make_in_background"] * 2,
            *["disturb"] * 2,
            *["let_time_pass", "recover", "stream"],
        ]
        getattr(self, self.draw(able, "deed"))()

    def stream(self) -> None:
        owner, process = self.draw(OWNERS, "owner"), self.awake(self.draw((0, 1), "which"))
        before = self.draw([None, None, *self.ids()], "before")
        made = self.ask(process, start(process.gateway, Caller(owner), previous_response_id=before))
        if isinstance(made, IsthmusError):
            known = before is not None and self.owner_of(before) == owner
            assert process.wire.failing or before is not None
            assert known or made.code in ("previous_response_not_found", "store_unavailable")
            return
        assert before is None or self.owner_of(before) == owner, "a conversation crossed owners"
        reader = Reader(owner, made.id, process, made, slow=self.draw((False, True), "slow"))
        self.readers.append(reader)
        reader.task = self.world.spawn(process, reader.read(), f"reader {made.id}")

    def make_in_background(self) -> None:
        owner, process = self.draw(OWNERS, "owner"), self.awake(self.draw((0, 1), "which"))
        for _ in range(self.draw((1, 2, 3), "count")):
            full = len(process.gateway.runs._background) >= LIMITS.background + LIMITS.queued
            made = self.ask(process, start_in_background(process.gateway, Caller(owner)))
            if isinstance(made, IsthmusError):
                assert full == (made.code == "server_is_overloaded")
                assert full or process.wire.failing
            else:
                assert not full
                self.rows[made] = Row(owner, process, troubled=process.wire.failing is not None)

    def follow(self) -> None:
        """Through the process that makes it, or through the other one."""
        id = self.draw(self.unfinished or sorted(self.rows), "id")
        row, here = self.rows[id], self.draw((True, False), "here")
        process = next((each for each in self.processes if (each is row.process) == here), self.processes[0])
        first = self.draw([0, *(number + 1 for number in sorted(row.told))], "first")
        slow = self.draw((False, False, True), "slow")
        reader = Reader(row.owner, id, process, first=first, slow=slow)
        self.followers.append(reader)
        reader.task = self.world.spawn(process, reader.follow(), f"follower {id}")
        if reader.refused is not None:
            assert reader.refused.code in ("response_not_found", "store_unavailable")
            assert id in self.deleted or process.wire.failing == "all"
            self.followers.remove(reader)

    def answer(self) -> None:
        asked: Asked = self.draw(self.world.upstream.open, "asked")
        match self.draw(("accept", "say", "say", "end"), "answer"):
            case "accept":
                asked.accept()
            case "say":
                asked.say(Text("x"))
            case "end":
                asked.end("done")
        self.world.quiet()

    def fail(self) -> None:
        kind = self.draw((UpstreamFailed, RuntimeError, ConfigError), "kind")
        self.draw(self.world.upstream.open, "asked").fail(kind("out of order"))
        self.world.quiet()

    def read_on_or_leave(self) -> None:
        reader = self.draw(self.reading, "reader")
        reader.left = reader.left or self.draw((False, False, True), "leaves")
        if reader.left and reader.run is not None:
            reader.run.stop("left")
        elif reader.left:
            reader.task.cancel()
        reader.go.set()
        self.world.quiet()
        self.every_call_is_answered()
        wire = reader.process.wire
        if reader.left and wire.thaw is None:
            assert reader.done, "a client left, and its stream goes on"
            kept = reader.run is None or reader.id in self.deleted or wire.failing
            assert kept or self.status(reader.id, reader.owner) is not None, "a client left, and nothing was kept"

    def call(self) -> None:
        """Asked of the process that makes it, or of the other one."""
        deed, here = self.draw(("cancel", "delete"), "deed"), self.draw((True, False), "here")
        id = self.draw([*self.unfinished, *(reader.id for reader in self.reading)] or self.ids(), "id")
        makers = [each for each in self.processes if each.gateway.runs.get(self.owner_of(id), id) is not None]
        process = next((each for each in self.processes if (each in makers) == here), self.processes[0])
        self.demand(process, deed, id)
        self.world.flow(self.draw((0.0, 5.0, 2.2 * LEASE), "patience"))

    def demand(self, process: Process, deed: str, id: str) -> None:
        owner, troubled = self.owner_of(id), any(each.wire.failing or each.wire.thaw for each in self.processes)
        task = self.world.spawn(process, getattr(process.gateway, deed)(Caller(owner), id), deed)
        self.calls.append(Call(deed, owner, id, process, task, self.world.loop.time(), troubled))

    def call_by_a_stranger(self) -> None:
        deed = self.draw(("cancel", "delete", "retrieve", "input_items", "follow"), "deed")
        process, id, before = self.awake(self.draw((0, 1), "which")), self.draw(self.ids(), "id"), self.stands()
        stranger = next(each for each in OWNERS if each != self.owner_of(id))
        answer = self.ask(process, getattr(process.gateway, deed)(Caller(stranger), id))
        assert isinstance(answer, IsthmusError), "somebody else's response was shown"
        assert answer.code == "response_not_found" or process.wire.failing
        assert self.stands() == before, "somebody else's response was touched"

    def let_time_pass(self) -> None:
        seconds, at_once = self.draw((0.5, 5.0, LEASE / 2, LEASE + 1), "seconds"), self.draw((False, True), "at once")
        if at_once:
            self.jump(seconds)
        else:
            self.world.flow(seconds)
            self.flowed += seconds

    def recover(self) -> None:
        """A gateway looks for orphans: what somebody makes is none."""
        process = self.awake(self.draw((0, 1), "which"))
        made = {(run.owner, run.id) for each in self.processes for run in self.made_by(each)}
        before = [id for id in self.unfinished if not self.rows[id].troubled and (self.rows[id].owner, id) in made]
        self.ask(process, process.gateway.orphans.look())
        assert self.flowed < LEASE / 5 or [id for id in before if id not in self.unfinished] == [], (
            "it was ended while somebody makes it"
        )

    def disturb(self) -> None:
        which = self.draw((0, 1), "which")
        process, what = self.processes[which], self.draw(DISTURBANCES, "what")
        match what:
            case "crash":
                self.crash(which)
            case "shut down":
                self.shut_down(which)
            case "hour":
                self.jump(3600)
            case "mend":
                self.mend()
            case "miss":
                self.miss_the_lease(which)
            case "sleep":
                process.wire.thaw = process.wire.thaw or asyncio.Event()
                self.trouble(process)
            case _:
                process.wire.failing = what
                self.trouble(process)

    def miss_the_lease(self, which: int) -> None:
        """One process sleeps for longer than its leases; the other one looks after what it left."""
        process, other = self.processes[which], self.processes[1 - which]
        made = [id for id in self.unfinished if self.rows[id].process is process]
        process.wire.thaw = process.wire.thaw or asyncio.Event()
        self.trouble(process)
        for asked in [each for each in self.world.upstream.open if each.task in process.tasks]:
            if self.draw((True, False), "ends"):
                asked.end("at last")  # what it then has to say comes too late
        if other.wire.thaw is None:
            deed = self.draw(("recover", "cancel", "delete"), "meanwhile")
            for id in made if deed != "recover" else ():
                self.demand(other, deed, id)
            self.world.flow(LEASE + 1)
            self.ask(other, other.gateway.orphans.look())
        process.wire.wake()
        self.world.quiet()

    def jump(self, seconds: float) -> None:
        """Both have slept: whoever wakes first may take what the other has lost."""
        if seconds > LEASE / 2:
            self.flowed = 0.0
            for call in self.calls:
                call.troubled = True
        self.world.jump(seconds)

    def trouble(self, process: Process) -> None:
        for each in [*self.calls, *(row for row in self.rows.values() if row.process is process)]:
            each.troubled = True  # type: ignore[attr-defined]

    def mend(self) -> None:
        for process in self.processes:
            process.wire.failing = None
            process.wire.wake()
        self.world.quiet()

    def crash(self, which: int) -> None:
        """kill -9, and another one is started."""
        dead = self.processes[which]
        self.calls = [call for call in self.calls if call.process is not dead]
        dead.wire.cut = True
        dead.wire.wake()
        self.world.kill(dead)
        self.processes[which] = self.world.begin()

    def shut_down(self, which: int) -> None:
        """In good order: everything has its end and is told so, and nothing is left."""
        process = self.processes[which]
        process.wire.wake()
        runs = process.gateway.runs
        self.cut_followers(process, lambda reader: runs.get(reader.owner, reader.id) is None)
        self.every_call_is_answered()
        for call in [call for call in self.calls if call.process is process]:
            self.calls.remove(call)
            call.task.cancel()
        self.world.flow_until(self.world.spawn(process, process.gateway.drain(0), "drain"), 10)
        self.world.flow_until(self.world.spawn(process, process.gateway.aclose(), "close"), 10)
        self.cut_followers(process, lambda reader: True)
        assert process.running == [], "a task was left"
        if not process.wire.failing:
            self.holds_nothing(process)
        self.check()
        process.dead = True
        self.processes[which] = self.world.begin()

    def cut_followers(self, process: Process, which: Callable[[Reader], bool]) -> None:
        """What the store tells does not end with this process: the server cuts it."""
        for reader in self.followers:
            if reader.process is process and not reader.done and which(reader):
                reader.left = True
                assert reader.task is not None
                reader.task.cancel()
        self.world.quiet()

    def wait_for_the_lease(self) -> None:
        """Two leases later whatever is unfinished has somebody who makes it, if the disks work and there is room."""
        self.mend()
        self.world.flow(2 * LEASE)
        for process in self.processes:
            self.ask(process, process.gateway.orphans.look())
        made = {(run.owner, run.id) for each in self.processes for run in self.made_by(each)}
        room = any(len(each.gateway.runs._background) < LIMITS.background + LIMITS.queued for each in self.processes)
        for id in self.unfinished if room else ():
            assert (self.rows[id].owner, id) in made, f"{id} stays unfinished, and nobody makes it"

    # ── what a client may see ──────────────────────────────────────────────────────────────────────

    @invariant()
    def check(self) -> None:
        self.every_call_is_answered()
        self.every_stream_ends_once()
        self.nothing_goes_back()
        self.every_end_is_told_to_receivers_once()
        self.nothing_is_left_open()

    def every_stream_ends_once(self) -> None:
        for reader in [*self.readers, *self.followers]:
            numbers = [event["sequence_number"] for event in reader.events]
            assert numbers == list(range(reader.first, reader.first + len(numbers))), "events are missing"
            ends = [number for number, event in zip(numbers, reader.events, strict=True) if event["type"] in TERMINAL]
            assert ends in ([], numbers[-1:]), "not exactly one end, or something after it"
            if reader.done and not reader.cut:
                self.ended(reader)
            if (end := reader.end) is not None and end["status"] == "completed" and reader.first == 0:
                said = [event["delta"] for event in reader.events if event["type"] == "response.output_text.delta"]
                assert "".join(said) == end["output_text"], "some words were not told"
            if end is not None and reader.id not in self.deleted:
                stored = self.status(reader.id, reader.owner)
                if "could not be stored" in str(end["error"]):
                    assert stored not in ("completed", "incomplete"), "told as failed, and yet it is there"
                else:
                    assert stored == end["status"], f"told as {end['status']}, stored as {stored}"
                    kept = json.loads(self.world.look(self.world.store.load(reader.id, owner=reader.owner)).response)
                    assert (kept["error"], kept["output"]) == (end["error"], end["output"]), (
                        "told otherwise than stored"
                    )
        for reader in self.followers:
            told = self.rows[reader.id].told
            for event in reader.events:
                if event["type"] not in TERMINAL:
                    assert told.setdefault(event["sequence_number"], event) == event, "told in two ways"

    def ended(self, reader: Reader) -> None:
        """A stream that is over, and whose client is still there."""
        if reader.run is None:
            code = None if reader.refused is None else reader.refused.code
            gone = not reader.events and code == "response_not_found" and reader.id in self.deleted
            # A client that says it saw the number which the end has is believed.
            told = len(self.world.look(self.world.store.events(reader.id, owner=reader.owner)))
            believed = not reader.events and reader.first - 1 >= told > 0
            assert reader.end or gone or believed or code == "store_unavailable", "a stream stopped without an end"
            return
        assert (reader.end is None) == (reader.refused is not None), "neither an end nor a refusal, or both"
        if reader.refused is not None and reader.refused.code != "upstream_timeout":
            asked = [each.provider for each in self.world.upstream.asked if each.task is reader.task]
            assert asked == ["one", "two"], "it was refused, and not everything was tried"

    def every_call_is_answered(self) -> None:
        done = [call for call in self.calls if call.task.done() and call.task.exception() is None]
        self.deleted |= {call.id for call in done if call.deed == "delete"}
        for call in list(self.calls):
            if not call.task.done():
                waited = self.world.loop.time() - call.began
                assert waited < 2 * LEASE + 3 or call.troubled, f"{call.deed} waits for ever"
                continue
            self.calls.remove(call)
            error = call.task.exception()
            if error is not None:
                assert isinstance(error, IsthmusError), repr(error)
                assert error.code in ("response_not_found", "not_cancellable", "store_unavailable"), repr(error)
                assert error.code != "store_unavailable" or call.troubled
                if call.id in self.rows and call.id not in self.deleted:
                    assert error.code != "response_not_found", "it is there, and was not found"
            elif call.deed == "cancel":
                assert call.troubled or call.task.result().status not in UNFINISHED, "cancelled, and goes on"

    def nothing_goes_back(self) -> None:
        for id, row in self.rows.items():
            status = self.status(id, row.owner)
            assert (status is None) == (id in self.deleted), f"{id} is {status}"
            if status is not None:
                assert status == row.seen or RANK.get(row.seen, 3) < RANK.get(status, 2), f"{row.seen} → {status}"
                row.seen = status
                if not row.troubled and status == "queued":
                    assert not row.told, "it is told already, and stored as queued"
        for id in self.ids():
            other = next(each for each in OWNERS if each != self.owner_of(id))
            assert self.status(id, other) is None, "it crossed owners"

    def every_end_is_told_to_receivers_once(self) -> None:
        """In the very step in which it is stored, by whomever; and of what a client waited for, nothing."""
        notices = [each.notice for each in self.world.look(self.world.store.deliveries(most=10_000))]
        told = {notice.about: (notice.owner, notice.type) for notice in notices}
        assert len(told) == len(notices), "one was told twice"
        for id, row in self.rows.items():
            status = self.status(id, row.owner)
            if status is not None:
                assert told.get(id) == (None if status in UNFINISHED else (row.owner, f"response.{status}"))
        assert not told.keys() - self.rows.keys(), "somebody waited for that"

    def nothing_is_left_open(self) -> None:
        open_now = self.world.upstream.open
        assert all(not asked.task.done() for asked in open_now), "a connection was left open"  # type: ignore[union-attr]
        for process in [each for each in self.processes if each.wire.thaw is None]:
            at_work = sum(
                asked.task.get_name().startswith("background") and asked.task in process.tasks for asked in open_now
            )  # type: ignore[union-attr]
            waiting = len(process.gateway.runs._background)
            assert at_work == min(LIMITS.background, waiting), "a place is free, and somebody waits; or too many work"

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                self.end_the_world()
        finally:
            self.world.close()

    def end_the_world(self) -> None:
        self.wait_for_the_lease()
        self.check()
        for reader in [*self.readers, *self.followers]:
            reader.slow = False
            reader.go.set()
        self.world.quiet()
        for _ in range(len(self.rows) + 1):  # what was left behind is made once more, as soon as there is room
            for _ in range(100):
                for asked in self.world.upstream.open[:1]:
                    asked.end("the end")
                    self.world.quiet()
            self.check()
            self.wait_for_the_lease()
            if self.world.upstream.open == []:
                break
        self.world.flow(5)
        self.check()
        assert self.calls == []
        for id, row in self.rows.items():
            assert self.status(id, row.owner) not in UNFINISHED, "it stayed unfinished"
        assert all(reader.done for reader in [*self.readers, *self.followers]), "a stream does not end"
        for which in (0, 1):
            self.shut_down(which)
        assert [task for task in asyncio.all_tasks(self.world.loop) if not task.done()] == [], "a task was left"

    # ── helpers ────────────────────────────────────────────────────────────────────────────────────

    def ask(self, process: Process, work: Coroutine[Any, Any, Any]) -> Any:
        """What is answered at once. Refusals are answers."""
        task = self.world.spawn(process, work)
        assert task.done(), "it waits for ever"
        error = task.exception()
        if error is not None and not isinstance(error, IsthmusError):
            raise error
        return error or task.result()

    @property
    def reading(self) -> list[Reader]:
        return [reader for reader in [*self.readers, *self.followers] if not reader.done]

    @property
    def unfinished(self) -> list[str]:
        return [id for id in sorted(self.rows) if self.status(id, self.rows[id].owner) in UNFINISHED]

    def awake(self, which: int) -> Process:
        """This process, or the other one if it sleeps; at least one does not."""
        if all(process.wire.thaw is not None for process in self.processes):
            self.mend()
        process = self.processes[which]
        return process if process.wire.thaw is None else self.processes[1 - which]

    def ids(self) -> list[str]:
        return sorted([*self.rows, *(reader.id for reader in self.readers)])

    def owner_of(self, id: str) -> str:
        return self.rows[id].owner if id in self.rows else next(r.owner for r in self.readers if r.id == id)

    def made_by(self, process: Process) -> list[Run]:
        return [run for id in self.ids() if (run := process.gateway.runs.get(self.owner_of(id), id)) is not None]

    def stands(self) -> list[Any]:
        """Everything that somebody could notice a change of."""
        return [
            [[run.id for run in self.made_by(process)] for process in self.processes],
            [self.status(id, self.owner_of(id)) for id in self.ids()],
        ]

    def status(self, id: str, owner: str) -> str | None:
        found = self.world.look(self.world.store.load(id, owner=owner))
        return None if found is None else found.status

    def holds_nothing(self, process: Process) -> None:
        held = self.world.look(self.world.store.renew(process.gateway.runs.holder, seconds=LEASE))
        assert not held.names, "a lease was left"


class HouseOnSqlite(House):
    kind = "sqlite"


class HouseOnPostgres(House):
    kind = "postgres"


_steps = settings(stateful_step_count=40, suppress_health_check=list(HealthCheck))
_few = settings(_steps, max_examples=80) if settings().derandomize else _steps
TestHouse, TestHouseOnSqlite, TestHouseOnPostgres = House.TestCase, HouseOnSqlite.TestCase, HouseOnPostgres.TestCase
TestHouse.settings = TestHouseOnSqlite.settings = _few
TestHouseOnPostgres.settings = settings(_few, max_examples=3) if settings().derandomize else _few
