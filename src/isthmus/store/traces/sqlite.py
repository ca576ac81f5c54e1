"""Traces in SQLite: the contract of `ports.traces.TraceStore`, in a file or, bounded like one, in memory.

One thread writes and may wait; readers have a thread and a connection of their own, so that neither holds up a loop.
In memory both share the one connection that there is, one after the other. The file is opened when it is first needed.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

from isthmus.errors import RequestRefused
from isthmus.ports.traces import (
    MOST_WALKED,
    Grouping,
    Trace,
    TraceFilter,
    TracePage,
    TraceStats,
    TraceSummary,
    TraceTotal,
)
from isthmus.store.sqlite.connect import FAULTS
from isthmus.store.traces import reads, summing, writes
from isthmus.store.traces.schema import SLOTS, explained, open_reader, open_writer

_T = TypeVar("_T")
_ANY: Final = TraceFilter()
_EXPORTED: Final = 100
_Identity = tuple[int, int] | None


class SqliteTraces:
    def __init__(self, path: Path | None = None) -> None:
        """`None`: in memory."""
        self._path = path
        self._memory = writes.Memory()
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._one = threading.RLock()
        """Held by whoever uses the connection in memory; of a file, by its reader."""
        self._writing = self._one if path is None else threading.RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._file: _Identity = None
        self._read_file: _Identity = None
        """Which file is open, to write and to read."""

    # ── by the thread that writes ──────────────────────────────────────────────────────────────────

    def keep(self, traces: Sequence[Trace]) -> None:
        try:
            self._write(partial(writes.keep, memory=self._memory, traces=traces))
        except BaseException:
            self._memory = writes.Memory()  # what a transaction that failed has noted is not there
            raise

    def forget(self, owner: str, response: str) -> None:
        self._write(partial(writes.forget, owner=owner, response=response))

    def prune(self, *, older_than: float | None = None, max_bytes: int | None = None, most: int = 1000) -> int:
        return self._write(partial(writes.prune, older_than=older_than, max_bytes=max_bytes, most=most))

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        with self._one, self._writing:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    # ── by whoever reads ───────────────────────────────────────────────────────────────────────────

    async def find(self, owner: str | None, id: str) -> Trace | None:
        return await self._read(partial(reads.find, owner=owner, id=id))

    async def list(
        self,
        owner: str | None,
        filter: TraceFilter = _ANY,
        *,
        limit: int = 50,
        after: int | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> TracePage:
        question = partial(reads.list_traces, owner=owner, filter=filter, limit=limit, after=after, order=order)
        return await self._read(question)

    async def totals(
        self,
        owner: str | None,
        filter: TraceFilter = _ANY,
        *,
        by: Grouping = "",
        step: int = 3600,
        most: int = 1000,
    ) -> Sequence[TraceTotal]:
        if step < SLOTS[0] or step % SLOTS[0]:
            raise RequestRefused(f"`step` must be a multiple of {SLOTS[0]} seconds", code="invalid_value", param="step")
        if filter.thread:
            raise RequestRefused("totals know no threads; leave `thread` out", code="invalid_value", param="thread")
        return await self._read(partial(summing.totals, owner=owner, filter=filter, by=by, step=step, most=most))

    async def walk(self, owner: str | None, id: str, *, most: int = MOST_WALKED) -> Sequence[TraceSummary]:
        return await self._read(partial(reads.walk, owner=owner, id=id, most=most))

    async def export(self, owner: str | None, filter: TraceFilter = _ANY) -> AsyncIterator[Trace]:
        after: int | None = None
        while True:
            page = await self.list(owner, filter, limit=_EXPORTED, after=after, order="asc")
            for summary in page.traces:
                yield await self._read(partial(reads.read_whole, summary=summary))
            if not page.has_more:
                return
            after = page.traces[-1].seq

    async def stats(self, owner: str | None = None) -> TraceStats:
        return await self._read(partial(reads.stats, owner=owner))

    # ── connections ────────────────────────────────────────────────────────────────────────────────

    def _write(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._writing:
            self._notice_loss()
            if self._writer is None:
                self._writer, self._file = open_writer(self._path), _identify(self._path)
            try:
                return change(self._writer)
            except FAULTS as error:
                # Opened anew the next time: it may be there again, or another one.
                self._writer.close()
                self._writer = None
                raise explained(self._path, error) from error

    async def _read(self, question: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="isthmus-traces-reader")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._ask, question)

    def _ask(self, question: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._one:
            try:
                connection = self._connection()
                if self._path is None:
                    return question(connection)
                connection.execute("BEGIN")  # all its statements see the same moment
                try:
                    return question(connection)
                finally:
                    connection.execute("COMMIT")
            except FAULTS as error:
                if self._reader is not None:
                    self._reader.close()
                    self._reader = None
                raise explained(self._path, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._path is None:
            if self._writer is None:
                self._writer = open_writer(None)
            return self._writer
        there = _identify(self._path)
        if self._reader is not None and there != self._read_file:
            self._reader.close()
            self._reader = None
        if self._reader is None:
            if there is None:
                open_writer(self._path).close()
            self._reader, self._read_file = open_reader(self._path), _identify(self._path)
        return self._reader

    def _notice_loss(self) -> None:
        """SQLite goes on with a file that was deleted or replaced; nobody would find what it writes there."""
        if self._writer is not None and self._path is not None and _identify(self._path) != self._file:
            self._writer.close()
            self._writer = None
            self._memory = writes.Memory()


def _identify(path: Path | None) -> _Identity:
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)
