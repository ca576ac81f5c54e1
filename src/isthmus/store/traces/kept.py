"""Traces in tables: the contract of `ports.traces.TraceStore`, whatever the tables are in.

One thread writes and may wait; readers have a thread of their own, so that neither holds up a loop. Where the tables
are, and what becomes of a connection that breaks, is up to `write` and `ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from isthmus.errors import RequestRefused
from isthmus.ports.packed import PackedTrace
from isthmus.ports.traced import Trace, TraceSummary
from isthmus.ports.traces import MOST_WALKED, Grouping, TraceFilter, TracePage, TraceStats, TraceTotal
from isthmus.store.traces import writes
from isthmus.store.traces.schema import SLOTS

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_T = TypeVar("_T")
_ANY: Final = TraceFilter()
_EXPORTED: Final = 100


class TracesInTables:
    def __init__(self) -> None:
        self.memory = writes.Memory()
        self._pool: ThreadPoolExecutor | None = None

    def write(self, change: Callable[[Tables], _T]) -> _T:
        """By the thread that writes."""
        raise NotImplementedError

    def ask(self, question: Callable[[Tables], _T]) -> _T:
        """By the thread that reads: all statements of a question see the same moment."""
        raise NotImplementedError

    def end_readers(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    # ── by the thread that writes ──────────────────────────────────────────────────────────────────

    def keep(self, traces: Sequence[PackedTrace]) -> None:
        try:
            self.write(partial(writes.keep, memory=self.memory, traces=traces))
        except BaseException:
            self.memory = writes.Memory()  # what a transaction that failed has noted is not there
            raise

    def forget(self, owner: str, response: str) -> None:
        self.write(partial(writes.forget, owner=owner, response=response))

    def prune(self, *, older_than: float | None = None, max_bytes: int | None = None, most: int = 1000) -> int:
        return self.write(partial(writes.prune, older_than=older_than, max_bytes=max_bytes, most=most))

    # ── by whoever reads ───────────────────────────────────────────────────────────────────────────

    async def find(self, owner: str | None, id: str) -> Trace | None:
        from isthmus.store.traces import reads  # late: a server starts without it

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
        from isthmus.store.traces import reads  # late: a server starts without it

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
        from isthmus.store.traces import summing

        return await self._read(partial(summing.totals, owner=owner, filter=filter, by=by, step=step, most=most))

    async def walk(self, owner: str | None, id: str, *, most: int = MOST_WALKED) -> Sequence[TraceSummary]:
        from isthmus.store.traces import reads  # late: a server starts without it

        return await self._read(partial(reads.walk, owner=owner, id=id, most=most))

    async def export(self, owner: str | None, filter: TraceFilter = _ANY) -> AsyncIterator[Trace]:
        from isthmus.store.traces import reads  # late: a server starts without it

        after: int | None = None
        while True:
            page = await self.list(owner, filter, limit=_EXPORTED, after=after, order="asc")
            for summary in page.traces:
                yield await self._read(partial(reads.read_whole, summary=summary))
            if not page.has_more:
                return
            after = page.traces[-1].seq

    async def stats(self, owner: str | None = None) -> TraceStats:
        from isthmus.store.traces import reads  # late: a server starts without it

        return await self._read(partial(reads.stats, owner=owner))

    async def _read(self, question: Callable[[Tables], _T]) -> _T:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="isthmus-traces-reader")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.ask, question)
