"""Threads with a connection each: every question and every change is one transaction on one of them.

In: plain functions of a connection. Out: what they return, once that is committed. A thread is as good as a connection
in a pool: there are as many as may be used at once, they come when they are needed, and what waits for one waits on the
loop, in a bounded queue. Statements go out in a pipeline: only who looks at an answer waits for it.

A transaction that met another one is done again. So is one whose connection broke before its end was sent, when the
server is back within `connect_timeout`. One that broke later may have been done: where its caller can see that
(`done`), it looks, and does it again if it was not; of any other one nobody knows, and its caller is told that the
store is away.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import monotonic, perf_counter
from typing import Final, TypeVar

import psycopg

from isthmus.errors import StoreUnavailable
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.faults import AGAIN, explain, is_lost
from isthmus.store.postgres.medium import Medium

# It warns of a pipeline that ended with its connection: of that, its callers hear from us.
logging.getLogger("psycopg").setLevel(logging.ERROR)

T = TypeVar("T")
Operation = Callable[[Connection], T]

_ATTEMPTS: Final = 20
_IDLE: Final = 1.0
"""Seconds after which a connection is asked whether it lives before anything is sent whose end could get lost."""
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""All statements see the same moment."""
_WRITE: Final = "BEGIN"
"""Each statement sees what was committed before it: what must not change meanwhile is locked first."""


class Again(Exception):
    """What was read is not so any more: the whole step begins anew."""


class Pool:
    def __init__(
        self,
        medium: Medium,
        *,
        connections: int,
        queue_size: int = 1024,
        timed: Callable[[str, float], None] = lambda operation, seconds: None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`timed` hears, on the loop, how long each step took with its wait; `changed`, on a thread, of each commit."""
        self._medium = medium
        self._timed = timed
        self._changed = changed
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="isthmus-store")
        self._room = asyncio.Semaphore(queue_size)
        """The bound of the queue: who finds no room waits here, on the loop."""
        self._own = threading.local()
        self._open: set[Connection] = set()
        self._noting = threading.Lock()
        self._accepted = 0
        self._closed = False

    async def read(self, query: Operation[T]) -> T:
        """The query's result; all its statements see the same moment."""
        return await self._run("read", query)

    async def write(self, operation: Operation[T], *, done: Operation[bool] | None = None) -> T:
        """The operation's result, after its commit. A caller that is cancelled gives up the answer, not the write.

        One that returns something empty (False, 0, no rows) has changed nothing, and nobody is told of it. `done` says
        whether what it wanted is so already, under the same locks. (The server's own word, the number of a transaction,
        would not do: after a crash it gives the numbers of what was lost to others.)
        """
        return await self._run("write", operation, done)

    @property
    def waiting(self) -> int:
        """Steps that are not done yet."""
        return self._accepted

    async def aclose(self) -> None:
        """Finish what was accepted, then close."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._open:
            connection.close()
        self._open.clear()

    async def _run(self, kind: str, operation: Operation[T], done: Operation[bool] | None = None) -> T:
        if self._closed:
            raise RuntimeError("the store is closed")
        began = perf_counter()
        try:
            await self._room.acquire()
            self._accepted += 1
            loop = asyncio.get_running_loop()
            work = partial(self._write, done) if kind == "write" else self._read
            until = monotonic() + self._medium.options.connect_timeout
            job: Future[T] = self._threads.submit(work, operation, until)

            def leave() -> None:
                self._accepted -= 1
                self._room.release()

            def over(_: object) -> None:
                with suppress(RuntimeError):  # the loop is closed, nobody is waiting any more
                    loop.call_soon_threadsafe(leave)

            job.add_done_callback(over)
            return await asyncio.shield(asyncio.wrap_future(job))
        finally:
            self._timed(kind, perf_counter() - began)

    def _read(self, query: Operation[T], until: float) -> T:
        return self._attempt(_READ, query, until)

    def _write(self, done: Operation[bool] | None, operation: Operation[T], until: float) -> T:
        result = self._attempt(_WRITE, operation, until, done)
        if result is None or result:
            self._changed()
        return result

    def _attempt(self, begin: str, operation: Operation[T], until: float, done: Operation[bool] | None = None) -> T:
        unsure = False
        for left in reversed(range(_ATTEMPTS)):
            connection, ending = self._connection(until), False
            try:
                with connection.pipeline() as pipeline:
                    connection.execute(begin)
                    if monotonic() - self._own.used > _IDLE:
                        pipeline.sync()  # it may be dead for long: known now, the step can be done on another one
                    if not unsure or done is None or not done(connection):
                        result = operation(connection)
                    ending = True
                    connection.execute("COMMIT")
                self._own.used = monotonic()
                return result
            except Again:
                self._undo(connection)
                if not left:
                    raise
            except psycopg.Error as error:
                self._undo(connection)
                if error.sqlstate in AGAIN and left:
                    continue
                if connection.closed or is_lost(error):
                    self._discard(connection)
                    if left and (not ending or begin == _READ):
                        continue
                    if left and done is not None and not unsure:
                        unsure, until = True, monotonic() + self._medium.options.connect_timeout
                        continue
                raise explain(error, self._medium.name) from error
            except BaseException:
                self._undo(connection)
                raise
        raise AssertionError("unreachable")

    def _undo(self, connection: Connection) -> None:
        try:
            if not connection.closed:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            self._discard(connection)

    def _connection(self, until: float) -> Connection:
        """This thread's own. A server that is away is waited for: when it is back, nobody has noticed."""
        while True:
            self._medium.wait(until - monotonic())
            connection: Connection | None = getattr(self._own, "connection", None)
            if connection is not None and not connection.closed:
                return connection
            try:
                connection = self._own.connection = self._medium.connect()
                self._own.used = monotonic()
            except StoreUnavailable:
                if monotonic() >= until:
                    raise
                continue
            with self._noting:
                self._open.add(connection)
            return connection

    def _discard(self, connection: Connection) -> None:
        self._own.connection = None
        with self._noting:
            self._open.discard(connection)
        connection.close()
