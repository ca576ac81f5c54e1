"""Processes that share one store, in a time of their own: each can be cut off from the store, sleep, and die.

Nothing here waits for real time or for another thread: the store is memory, or SQLite whose work is done inline. So
the same steps lead to the same end, and time never moves while a call is in flight.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from gateway.house import Upstream, make_gateway
from isthmus.errors import ConfigError
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.runs import RunLimits
from isthmus.store.memory import MemoryStore
from isthmus.store.memory_leases import Changes
from isthmus.store.sqlite.migrations import migrate
from isthmus.store.sqlite.store import SqliteStore
from own_time import OwnTimeLoop

LEASE: Final = 30.0
LIMITS: Final = RunLimits(background=2, queued=2, lease=LEASE)
TIMEOUT: Final = 120.0
WRITES: Final = ("save", "append_events", "update_status", "claim", "renew", "release", "signal", "delete")
_READS: Final = ("load", "events", "expired", "chain", "list_input_items", "watch")


class Loop(OwnTimeLoop):
    """Its clock stands still at a fixed hour, and it can say whether there is anything left to do."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped_at = 1_000_000.0

    def busy(self) -> bool:
        return bool(self._ready) or any(timer._when <= self.time() for timer in self._timers())  # type: ignore[attr-defined]

    def next_timer(self) -> float | None:
        return min((timer._when for timer in self._timers()), default=None)

    def go_to(self, when: float) -> None:
        self._stopped_at = max(when, self.time())

    def _timers(self) -> list[Any]:
        return [timer for timer in self._scheduled if not timer._cancelled]  # type: ignore[attr-defined]


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


@cache
def _empty_database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, Path(":memory:"))
    return connection


def inline_sqlite(now: Callable[[], float]) -> SqliteStore:
    """An SQLite store without threads and without a file."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _empty_database().backup(connection)
    store: Any = SqliteStore.__new__(SqliteStore)
    store._max_event_bytes, store._now, store._changes = 16 * 1024 * 1024, now, Changes()
    store.writer, store.readers = _Inline(connection, store._changes), _Inline(connection)
    store.close = connection.close
    return store  # type: ignore[no-any-return]


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


class World:
    def __init__(self, kind: str) -> None:
        self.loop = Loop()
        self.loop.set_task_factory(self._new_task)
        self.store: Any = MemoryStore(now=self.loop.time) if kind == "memory" else inline_sqlite(self.loop.time)
        self.upstream = Upstream()
        self._ids = itertools.count(1)

    def begin(self) -> Process:
        wire = Wire(self.store)

        async def make() -> Gateway:
            return make_gateway(
                wire,  # type: ignore[arg-type]
                self.upstream,
                now=self.loop.time,
                limits=LIMITS,
                fallbacks={"one/m": ["two/m"]},
                new_id=lambda prefix: f"{prefix}_{next(self._ids):04}",
                total_timeout=TIMEOUT,
            )

        return Process(self.run(make()), wire)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What needs no time."""
        return self.loop.run_until_complete(work)

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

    def quiet(self) -> None:
        """All that can happen without time happens."""
        self.run(self._quiet())

    def jump(self, seconds: float) -> None:
        """The clock is put forward at once, as after a machine has slept."""
        self.loop.skip(seconds)
        self.quiet()

    def flow(self, seconds: float) -> None:
        """Time goes by: everything happens when it is due."""
        end = self.loop.time() + seconds
        self.quiet()
        while (due := self.loop.next_timer()) is not None and due <= end:
            self.loop.go_to(due)
            self.quiet()
        self.loop.go_to(end)
        self.quiet()

    def flow_until(self, task: asyncio.Task[Any], patience: float) -> Any:
        end = self.loop.time() + patience
        while not task.done() and self.loop.time() < end:
            self.flow(0.5)
        assert task.done(), f"`{task.get_name()}` waits for ever"
        return task.result()

    def kill(self, process: Process) -> None:
        """As kill -9: nothing reaches the store any more, and the connections close."""
        process.wire.cut = process.dead = True
        for _ in range(5):
            for task in process.running:
                task.cancel()
            self.quiet()

    def close(self) -> None:
        for _ in range(5):
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.quiet()
        self.run(self.loop.shutdown_asyncgens())
        self.loop.close()
        if hasattr(self.store, "close"):
            self.store.close()

    async def _quiet(self) -> None:
        for _ in range(20_000):
            await asyncio.sleep(0)
            if not self.loop.busy():
                return
        raise AssertionError("something goes round for ever")

    def _new_task(self, loop: asyncio.AbstractEventLoop, work: Any, **named: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **named)
        tasks = _here.get(None)
        if tasks is not None:
            tasks.append(task)
        return task
