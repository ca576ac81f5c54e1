"""Two gateways on one store, driven by chance in a time of their own, against what a client may see.

Whatever happens (streams, cancels, deletes, clients that leave, upstreams and stores that fail, crashes, restarts,
jumps of the clock): exactly one terminal event; what a client saw as the end is stored so; nothing stays unfinished
longer than its lease; nothing crosses owners; nothing is left open. A failure prints the steps that lead to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.house import Asked, Upstream, make_gateway, start, start_in_background
from isthmus.bridge.deltas import Text
from isthmus.conduct.run import Run
from isthmus.errors import ConfigError, IsthmusError, UpstreamFailed
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.runs import RunLimits
from isthmus.ports import UNFINISHED
from isthmus.store.memory import MemoryStore
from own_time import OwnTimeLoop, turns

LEASE = 30.0
OWNERS = ("ann", "bob")
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
WRITES = ("save", "append_events", "update_status", "claim", "renew", "release", "signal", "delete")


class Wire:
    """A process's way to the store: it can fail for a while, and it is cut when the process dies."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.failing = False
        self.cut = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*given: Any, **named: Any) -> Any:
            if self.cut:
                await asyncio.Event().wait()  # a dead process does nothing more
            if self.failing and name in WRITES:
                raise ConfigError("the disk is full", code="store_unavailable")
            return await method(*given, **named)

        return call


@dataclass
class Process:
    gateway: Gateway
    wire: Wire
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)


@dataclass
class Reader:
    """A client with a stream."""

    owner: str
    id: str
    run: Run
    process: Process
    task: asyncio.Task[None] | None = None
    events: list[Any] = field(default_factory=list)
    refused: IsthmusError | None = None
    left: bool = False

    @property
    def ends(self) -> list[Any]:
        return [event for event in self.events if event["type"] in TERMINAL]


class House(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = OwnTimeLoop()
        self.loop.stop_clock()
        self.store = MemoryStore(now=self.loop.time)
        self.upstream = Upstream()
        self.processes: list[Process] = [self.begin(), self.begin()]
        self.readers: list[Reader] = []
        self.background: dict[str, str] = {}
        """Id → owner."""
        self.deleted: set[str] = set()

    # ── the world ──────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> Process:
        wire = Wire(self.store)
        limits = RunLimits(background=2, queued=2, lease=LEASE)

        async def make() -> Gateway:
            return make_gateway(
                wire,
                self.upstream,
                now=self.loop.time,
                limits=limits,
                fallbacks={"one/m": ["two/m"]},  # type: ignore[arg-type]
            )

        return Process(self.loop.run_until_complete(make()), wire)

    def do(self, process: Process, work: Coroutine[Any, Any, Any], *, patience: float = 3 * LEASE) -> Any:
        """Have a process do something; its time goes on in small steps until it is done. Refusals are answers."""

        async def main() -> Any:
            before = asyncio.all_tasks()
            task = asyncio.ensure_future(work)
            await turns()
            waited = 0.0
            while not task.done() and waited < patience:
                self.loop.skip(0.5)
                waited += 0.5
                await turns()
            process.tasks |= asyncio.all_tasks() - before - {asyncio.current_task()}
            assert task.done(), "it waits for ever"
            return task.exception() or task.result()

        found = self.loop.run_until_complete(main())
        if isinstance(found, BaseException) and not isinstance(found, IsthmusError):
            raise found
        return found

    def settle(self) -> None:
        self.loop.run_until_complete(turns())

    # ── what may happen ────────────────────────────────────────────────────────────────────────────

    @rule(owner=st.sampled_from(OWNERS), which=st.integers(0, 1))
    def stream(self, owner: str, which: int) -> None:
        process = self.processes[which]
        run = self.do(process, start(process.gateway, Caller(owner)))
        if isinstance(run, IsthmusError):
            return
        reader = Reader(owner, run.id, run, process)

        async def read() -> None:
            try:
                async for batch in run.events():
                    reader.events += batch
            except IsthmusError as error:
                reader.refused = error

        async def begin() -> None:
            reader.task = asyncio.ensure_future(read())

        self.do(process, begin())
        self.readers.append(reader)

    @rule(owner=st.sampled_from(OWNERS), which=st.integers(0, 1))
    def make_in_background(self, owner: str, which: int) -> None:
        process = self.processes[which]
        made = self.do(process, start_in_background(process.gateway, Caller(owner)))
        if not isinstance(made, IsthmusError):
            self.background[made] = owner

    @rule(data=st.data(), deed=st.sampled_from(["accept", "say", "end"]))
    def answer(self, data: st.DataObject, deed: str) -> None:
        asked = self.some_asked(data)
        if asked is not None:
            {"accept": asked.accept, "say": lambda: asked.say(Text("x")), "end": lambda: asked.end("done")}[deed]()
            self.settle()

    @rule(data=st.data(), kind=st.sampled_from(["upstream", "bug", "config"]))
    def fail(self, data: st.DataObject, kind: str) -> None:
        asked = self.some_asked(data)
        if asked is None:
            return
        failure = {
            "upstream": UpstreamFailed("out of order"),
            "bug": RuntimeError("a bug"),
            "config": ConfigError("no"),
        }
        if asked._accepted.done():
            asked.break_off(failure[kind])
        else:
            asked.refuse(failure[kind])
        self.settle()

    def some_asked(self, data: st.DataObject) -> Asked | None:
        waiting = self.upstream.open
        return data.draw(st.sampled_from(waiting)) if waiting else None

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        if reader.task is not None and not reader.task.done():
            reader.left = True
            reader.run.stop("left")
            self.settle()

    @precondition(lambda self: self.readers or self.background)
    @rule(
        data=st.data(),
        deed=st.sampled_from(["cancel", "delete"]),
        which=st.integers(0, 1),
        owner=st.sampled_from(OWNERS),
    )
    def end_it(self, data: st.DataObject, deed: str, which: int, owner: str) -> None:
        id = data.draw(st.sampled_from(sorted([reader.id for reader in self.readers] + list(self.background))))
        process = self.processes[which]
        method = process.gateway.cancel if deed == "cancel" else process.gateway.delete
        before = self.stands()
        answer = self.do(process, method(Caller(owner), id))
        if owner != self.owner_of(id):
            assert isinstance(answer, IsthmusError)
            assert answer.code == "response_not_found"
            assert self.stands() == before, "somebody else's response was touched"
        elif deed == "delete" and not isinstance(answer, IsthmusError):
            self.deleted.add(id)

    @rule(which=st.integers(0, 1), failing=st.booleans())
    def trouble_the_disk(self, which: int, failing: bool) -> None:
        self.processes[which].wire.failing = failing

    @rule(which=st.integers(0, 1))
    def crash(self, which: int) -> None:
        """kill -9, and another one is started."""
        dead = self.processes[which]
        dead.wire.cut = True
        tasks = [task for task in dead.tasks if not task.done()]
        for reader in self.readers:
            if reader.process is dead:
                reader.left = True
        for task in tasks:
            task.cancel()
        self.settle()
        for task in [task for task in tasks if not task.done()]:
            task.cancel()
        self.settle()
        self.processes[which] = self.begin()

    @rule(seconds=st.sampled_from([0.5, 5.0, LEASE / 2, LEASE + 1, 3600.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.loop.skip(seconds)
        self.settle()

    @rule(which=st.integers(0, 1))
    def recover(self, which: int) -> None:
        process = self.processes[which]
        self.do(process, process.gateway.recover())

    # ── what a client may see ──────────────────────────────────────────────────────────────────────

    def owner_of(self, id: str) -> str:
        return self.background.get(id) or next(reader.owner for reader in self.readers if reader.id == id)

    def stands(self) -> list[Any]:
        """Everything that somebody could notice a change of."""
        running = [
            (p.gateway.runs.get(o, r.id) is not None) for p in self.processes for o in OWNERS for r in self.readers
        ]
        return [running, sorted((id, self.status(id, owner)) for id, owner in self.background.items())]

    def status(self, id: str, owner: str) -> str | None:
        found = self.loop.run_until_complete(self.store.load(id, owner=owner))
        return None if found is None else found.status

    @invariant()
    def every_stream_ends_once(self) -> None:
        for reader in self.readers:
            assert len(reader.ends) <= 1
            assert not reader.ends or reader.events[-1] is reader.ends[0]
            assert [event["sequence_number"] for event in reader.events] == list(range(len(reader.events)))
            if reader.task is not None and reader.task.done() and not reader.left:
                assert reader.ends or reader.refused is not None, "a stream stopped without an end"
                assert not (reader.ends and reader.refused)

    @invariant()
    def what_was_told_is_stored(self) -> None:
        for reader in self.readers:
            if reader.ends and reader.id not in self.deleted:
                told = reader.ends[0]["response"]
                if "could not be stored" not in str(told["error"]):
                    assert self.status(reader.id, reader.owner) == told["status"]

    @invariant()
    def nothing_crosses_owners(self) -> None:
        for id, owner in [*self.background.items(), *((reader.id, reader.owner) for reader in self.readers)]:
            other = next(each for each in OWNERS if each != owner)
            assert self.status(id, other) is None

    def teardown(self) -> None:
        for process in self.processes:
            process.wire.failing = False
        for asked in self.upstream.open:
            asked.end("the end")
        self.settle()
        for process in self.processes:
            self.do(process, process.gateway.drain(0))
        self.loop.skip(2 * LEASE)
        self.do(self.processes[0], self.processes[0].gateway.recover())
        for id, owner in self.background.items():
            assert self.status(id, owner) not in UNFINISHED, "it stayed unfinished"
        for process in self.processes:
            self.do(process, process.gateway.aclose())
        assert self.upstream.open == [], "a connection was left open"
        left = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
        assert left == [], "a task was left"
        self.loop.close()


TestHouse = House.TestCase
TestHouse.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
