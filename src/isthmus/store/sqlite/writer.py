"""The one thread that writes, and the group commit.

In: operations from the event loop. Out: their results, once their transaction is committed. Whatever is waiting
when the thread is free shares one transaction, so a hundred concurrent saves cost a few commits. An operation that
fails is undone alone: all are taken back and carried out anew then, each behind a savepoint, so an operation may run
twice. When the transaction itself fails, all its operations fail. One event loop for life.

The thread also watches over the file: nothing counts as saved that is not in the file at the path, and what is wrong
with that is tried again every moment, until a response of some size can be saved (`probe`).
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final, Literal, TypeVar

import msgspec

from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.store.sqlite.connect import FAULTS, Trouble, concerns_file, trouble_of, unavailable
from isthmus.store.sqlite.known import Writing
from isthmus.store.sqlite.medium import Medium

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]

_LARGEST_GROUP: Final = 256
_STAYS: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT)
"""What a new connection to the same file would not change."""
_NOT_OPEN: Final = Trouble("it is not open", "it is tried again in a moment")

log = logging.getLogger("isthmus.store")


class _Job(msgspec.Struct, eq=False):
    operation: Operation[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None


class Writer:
    def __init__(
        self,
        connection: Writing,
        medium: Medium,
        *,
        probe: Operation[None],
        queue_size: int = 1024,
        retry_seconds: float = 1.0,
        timed: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`probe` raises what keeps a response from being saved; it is tried every `retry_seconds` while there is
        trouble. It makes its own transactions. `timed` hears, on the loop, how long each operation took with its
        wait."""
        self.commits = 0
        self.operations = 0
        self._connection: Writing | None = connection
        self._medium = medium
        self._probe = probe
        self._timed = timed
        self._retry_seconds = retry_seconds
        self._room = asyncio.Semaphore(queue_size)
        """The bound of the queue: who finds no room waits here, on the loop."""
        self._queue: queue.SimpleQueue[_Job | Literal["look"] | None] = queue.SimpleQueue()
        self._accepted = 0
        self._settled = asyncio.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="isthmus-store-writer", daemon=True)
        medium.wake = lambda: self._queue.put("look")
        self._thread.start()

    async def run(self, operation: Operation[T]) -> T:
        """The operation's result, after its commit. A caller that is cancelled gives up the answer, not the write."""
        if self._closing:
            raise RuntimeError("the store is closed")
        began = perf_counter()
        self._accepted += 1
        try:
            await self._room.acquire()
        except BaseException:
            self._leave()
            raise
        loop = asyncio.get_running_loop()
        job = _Job(operation, loop.create_future(), loop)
        self._queue.put(job)
        try:
            result: T = await job.future
        finally:
            self._timed(perf_counter() - began)
        return result

    @property
    def waiting(self) -> int:
        """Operations that are not committed yet."""
        return self._accepted

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        while self._accepted:
            self._settled.clear()
            await self._settled.wait()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        open_for_more = True
        while open_for_more:
            group: list[_Job] = []
            job = self._next()
            while job is not None:
                if job == "look":
                    self._look()
                else:
                    group.append(job)
                if len(group) == _LARGEST_GROUP:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            open_for_more = job is not None
            if group:
                self._commit(group)
                self._answer(group)
        self._medium.let_go(self._connection)

    def _next(self) -> _Job | Literal["look"] | None:
        while True:
            try:
                return self._queue.get(timeout=self._retry_seconds if self._medium.troubled else None)
            except queue.Empty:
                self._look()

    def _commit(self, group: list[_Job]) -> None:
        try:
            connection = self._stand()
            self._begin(connection)
            try:
                for job in group:
                    job.result = job.operation(connection)
            except Exception:
                if len(group) == 1 or not connection.in_transaction:
                    raise  # nobody else's work has to survive it, or SQLite gave up all of it (disk full, IO error)
                self._undo()
                self._begin(connection)
                for job in group:
                    self._attempt(connection, job)
            connection.execute("COMMIT")
            # Not before this look is anything saved: SQLite is content with a file that nobody will find again.
            if (lost := self._medium.lost()) is not None:
                raise self._medium.report(lost)
            self.commits += 1
            self.operations += len(group)
        except BaseException as error:
            self._undo()
            shown = self._explain(error)
            for job in group:
                job.error = job.error or shown

    @staticmethod
    def _begin(connection: Writing) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.known.begin(connection)

    def _attempt(self, connection: Writing, job: _Job) -> None:
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.operation(connection)
        except Exception as error:
            job.error = self._explain(error)
            if not connection.in_transaction:
                raise  # SQLite gave up the whole transaction (disk full, IO error)
            connection.execute("ROLLBACK TO job")
            connection.known.clear()
        connection.execute("RELEASE job")

    def _undo(self) -> None:
        # The group is reported as failed already; the next BEGIN will say if nothing works any more.
        with suppress(*FAULTS):
            if self._connection is not None:
                self._connection.known.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _explain(self, error: BaseException) -> BaseException:
        if not isinstance(error, FAULTS):
            return error
        if concerns_file(error):
            self._medium.report(trouble_of(error))
        return unavailable(error, self._medium.path)

    # ── the file ───────────────────────────────────────────────────────────────────────────────────

    def _stand(self) -> Writing:
        """The connection, if what it is open on stands at the path and may be written."""
        if self._connection is None or self._medium.look() is not None:
            self._look()
            if self._connection is None or self._medium.look() is not None:
                self._medium.check()
        if self._connection is None:
            raise self._medium.report(_NOT_OPEN)
        return self._connection

    def _look(self) -> None:
        """Find out how the file is, take up what stands there now, and note what was found."""
        if self._connection is not None:
            self._connection.known.clear()  # the probe's transactions are its own
        trouble = self._find_trouble()
        if trouble is None:
            self._medium.recovered()
        else:
            self._medium.report(trouble)

    def _find_trouble(self) -> Trouble | None:
        seen = self._medium.look()
        if seen is not None and not (seen.lost and seen.there):
            return seen
        try:
            if seen is not None or self._connection is None:
                self._probe(self._reopen())
                return None
            try:
                self._probe(self._connection)
            except FAULTS as error:
                self._undo()
                if trouble_of(error).code in _STAYS:
                    raise
                self._probe(self._reopen())
        except FAULTS as error:
            self._undo()
            return trouble_of(error)
        except IsthmusError as error:  # what stands there is nothing that we can open
            return Trouble(error.message, "", message=error.message)
        except Exception as error:  # whatever it is: without this thread nothing would ever be saved again
            self._undo()
            tell(log, "error", "store.look.failed", path=self._medium.path, trace=error)
            return Trouble(f"it cannot be examined: {error!r}", "the log says more")
        return None

    def _reopen(self) -> Writing:
        old, self._connection = self._connection, None
        self._connection = self._medium.reopen(old)
        return self._connection

    def _answer(self, group: list[_Job]) -> None:
        # One wake-up of the loop for the whole group. RuntimeError: the loop is closed, nobody is waiting any more.
        with suppress(RuntimeError):
            group[0].loop.call_soon_threadsafe(self._settle, group)

    def _settle(self, group: list[_Job]) -> None:
        for job in group:
            self._room.release()
            self._leave()
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)

    def _leave(self) -> None:
        self._accepted -= 1
        if not self._accepted:
            self._settled.set()
