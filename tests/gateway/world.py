"""Processes that share one store, in a time of their own: each can be cut off from the store, sleep, and die.

Nothing here waits for real time or for another thread: the store is memory, or SQLite or PostgreSQL whose work is done
inline. So the same steps lead to the same end, and time never moves while a call is in flight.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from gateway.house import Upstream, make_gateway, start_in_background
from isthmus.errors import ConfigError
from isthmus.gateway.announce import Announcer
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.runs import RunLimits
from isthmus.store.memory import MemoryStore
from isthmus.store.memory_leases import Changes
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Connection, Options, connect
from isthmus.store.postgres.store import PostgresStore
from isthmus.store.sqlite.store import SqliteStore
from own_time import OwnTime
from postgres import database_of
from stored import new_database

ANN: Final = Caller("ann")
LEASE: Final = 30.0
LIMITS: Final = RunLimits(background=2, queued=2, lease=LEASE)
TIMEOUT: Final = 120.0
_empty_database = cache(new_database)
WRITES: Final = (
    *("save", "append_events", "update_status", "claim", "renew", "release", "signal", "delete"),
    *("start_conversation", "describe_conversation", "end_conversation", "add_items", "remove_item"),
)
_READS: Final = (
    *("load", "events", "expired", "chain", "list_input_items", "watch"),
    *("conversation", "conversation_item", "conversation_items", "conversation_turns"),
)


class _Inline:
    """The writer and the readers of an SQLite store, on the spot."""

    def __init__(self, connection: sqlite3.Connection, changes: Changes | None = None) -> None:
        self._connection = connection
        self._changes = changes

    async def run(self, operation: Callable[[sqlite3.Connection], Any]) -> Any:
        self._connection.execute("BEGIN")
        before = self._connection.total_changes
        try:
            result = operation(self._connection)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        if self._changes is not None:
            self._changes.tell_if(self._connection.total_changes != before)
        return result


class _Nothing:
    """No file: nothing can happen to it."""

    def check(self) -> None: ...


def inline_sqlite(now: Callable[[], float]) -> SqliteStore:
    """An SQLite store without threads and without a file."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _empty_database().backup(connection)
    store: Any = SqliteStore.__new__(SqliteStore)
    store._max_event_bytes, store._now, store._changes = 16 * 1024 * 1024, now, Changes()
    store._medium, store._named = _Nothing(), set()
    store.writer, store.readers = _Inline(connection, store._changes), _Inline(connection)
    store.close = connection.close
    return store  # type: ignore[no-any-return]


class _InlinePool:
    """The connections of a PostgreSQL store, on the spot: one for all."""

    def __init__(self, connection: Connection, changes: Changes) -> None:
        self._connection = connection
        self._changes = changes

    async def read(self, query: Callable[[Connection], Any]) -> Any:
        with self._connection.pipeline(), self._connection.transaction():
            return query(self._connection)

    async def write(self, operation: Callable[[Connection], Any], *, done: Any = None) -> Any:
        """`done` is for a connection that breaks at its commit: this one does not."""
        result = await self.read(operation)
        self._changes.tell_if(result is None or bool(result))
        return result


def inline_postgres(now: Callable[[], float]) -> PostgresStore:
    """A PostgreSQL store without threads, on an empty database."""
    connection = connect(Options(Address(database_of(Path(f"/world/{next(_worlds)}")))))
    store: Any = PostgresStore.__new__(PostgresStore)
    store._max_event_bytes, store._at, store._changes = 16 * 1024 * 1024, now, Changes()
    store._medium, store._named = _Nothing(), set()
    store.pool = _InlinePool(connection, store._changes)
    store.close = connection.close
    return store  # type: ignore[no-any-return]


_worlds = itertools.count()


def open_inline(kind: str, now: Callable[[], float]) -> Any:
    """The store of this kind."""
    match kind:
        case "memory":
            return MemoryStore(now=now)
        case "sqlite":
            return inline_sqlite(now)
        case _:
            return inline_postgres(now)


class Wire:
    """A process's way to the store: it can fail for a while, and it is cut when the process dies."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.failing: str | None = None
        self.cut = False
        self.thaw: asyncio.Event | None = None
        """The process sleeps until then."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*given: Any, **named: Any) -> Any:
            if self.thaw is not None:
                await self.thaw.wait()
            if self.cut:
                await asyncio.Event().wait()  # a dead process does nothing more
            fails = {None: (), "writes": WRITES, "all": WRITES + _READS}[self.failing]
            if name in fails:
                raise ConfigError("the disk is full", code="store_unavailable")
            return await method(*given, **named)

        return call

    def wake(self) -> None:
        if self.thaw is not None:
            self.thaw.set()
            self.thaw = None

    async def aclose(self) -> None:
        """The store outlives a process."""


@dataclass(eq=False)
class Process:
    gateway: Gateway
    wire: Wire
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    dead: bool = False

    @property
    def running(self) -> list[asyncio.Task[Any]]:
        return [task for task in self.tasks if not task.done()]


_here: contextvars.ContextVar[list[asyncio.Task[Any]] | None] = contextvars.ContextVar("tasks of this process")


class World(OwnTime):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.loop.set_task_factory(self._new_task)
        self.store: Any = open_inline(kind, self.loop.time)
        self.upstream = Upstream()
        self._ids = itertools.count(1)

    def begin(self) -> Process:
        wire = Wire(self.store)

        async def make() -> Gateway:
            gateway = make_gateway(
                wire,  # type: ignore[arg-type]
                self.upstream,
                now=self.loop.time,
                limits=LIMITS,
                fallbacks={"one/m": ["two/m"]},
                new_id=lambda prefix: f"{prefix}_{next(self._ids):04}",
                total_timeout=TIMEOUT,
            )
            # Nobody delivers: what is to be told stays where it can be looked at.
            gateway.runs.announcer = Announcer({"hook": frozenset()}, new_id=gateway._new_id)
            return gateway

        return Process(self.run(make()), wire)

    def look(self, reading: Coroutine[Any, Any, Any]) -> Any:
        """What the store says now, without a turn of the loop."""
        try:
            reading.send(None)
        except StopIteration as answer:
            return answer.value
        raise AssertionError("the store waits")

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any], name: str = "call") -> asyncio.Task[Any]:
        """Have a process do something: its tasks die with it."""
        context = contextvars.copy_context()
        context.run(_here.set, process.tasks)
        task: asyncio.Task[Any] = context.run(self.loop.create_task, work)
        task.set_name(name)
        self.quiet()
        return task

    def kill(self, process: Process) -> None:
        """As kill -9: nothing reaches the store any more, and the connections close."""
        process.wire.cut = process.dead = True
        for _ in range(5):
            for task in process.running:
                task.cancel()
            self.quiet()

    def close(self) -> None:
        super().close()
        if hasattr(self.store, "close"):
            self.store.close()

    def _new_task(self, loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **named)
        tasks = _here.get(None)
        if tasks is not None:
            tasks.append(task)
        return task


# ── what happens there ─────────────────────────────────────────────────────────────────────────────────


def make(world: World, process: Process) -> str:
    id: str = world.spawn(process, start_in_background(process.gateway, ANN)).result()
    return id


def stored(world: World, id: str) -> Any:
    found = world.look(world.store.load(id, owner="ann"))
    return None if found is None else json.loads(found.response)


def follow(world: World, process: Process, id: str, after: int = -1) -> list[Any]:
    """The events as they come."""
    events: list[Any] = []

    async def read() -> None:
        async for batch in await process.gateway.follow(ANN, id, after):
            events.extend(json.loads(event) for event in batch)
        events.append("over")

    world.spawn(process, read(), "follower")
    return events


def sleep(process: Process) -> None:
    process.wire.thaw = asyncio.Event()


def wake(world: World, process: Process) -> None:
    process.wire.wake()
    world.quiet()
