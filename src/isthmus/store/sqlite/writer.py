"""The one thread that writes, and the group commit.

In: operations from the event loop. Out: their results, once their transaction is committed. Whatever is waiting
when the thread is free shares one transaction, so a hundred concurrent saves cost a few commits. An operation that
fails is undone alone; when the transaction itself fails, all its operations fail. One event loop for life.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from isthmus.store.sqlite.connect import unavailable

T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]

_LARGEST_GROUP: Final = 256


@dataclass(slots=True)
class _Job:
    operation: Operation[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None


class Writer:
    def __init__(self, connection: sqlite3.Connection, path: Path, *, queue_size: int = 1024) -> None:
        self.commits = 0
        self.operations = 0
        self._connection = connection
        self._path = path
        self._room = asyncio.Semaphore(queue_size)
        """The bound of the queue: who finds no room waits here, on the loop."""
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._accepted = 0
        self._settled = asyncio.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="isthmus-store-writer", daemon=True)
        self._thread.start()

    async def run(self, operation: Operation[T]) -> T:
        """The operation's result, after its commit. A caller that is cancelled gives up the answer, not the write."""
        if self._closing:
            raise RuntimeError("the store is closed")
        self._accepted += 1
        try:
            await self._room.acquire()
        except BaseException:
            self._leave()
            raise
        loop = asyncio.get_running_loop()
        job = _Job(operation, loop.create_future(), loop)
        self._queue.put(job)
        result: T = await job.future
        return result

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
            job = self._queue.get()
            while job is not None:
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
        self._connection.close()

    def _commit(self, group: list[_Job]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for job in group:
                self._attempt(job)
            self._connection.execute("COMMIT")
            self.commits += 1
            self.operations += len(group)
        except BaseException as error:
            self._undo()
            shown = unavailable(error, self._path) if isinstance(error, sqlite3.Error) else error
            for job in group:
                job.error = job.error or shown

    def _attempt(self, job: _Job) -> None:
        self._connection.execute("SAVEPOINT job")
        try:
            job.result = job.operation(self._connection)
        except Exception as error:
            job.error = unavailable(error, self._path) if isinstance(error, sqlite3.Error) else error
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction (disk full, IO error)
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")

    def _undo(self) -> None:
        # The group is reported as failed already; the next BEGIN will say if nothing works any more.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

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
