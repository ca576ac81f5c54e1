"""Responses that are made while nobody waits: kept by the store, followed by whoever asks.

A background run is iterated by a task of its own. Its events are stored in small batches, so that a
client can come back and read on after the last one it saw, also on another connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from isthmus.errors import IsthmusError, UpstreamFailed
from isthmus.gateway.run import Run
from isthmus.ports import EventBatch, Store, StoredResponse
from isthmus.protocol.events import Event

log = logging.getLogger("isthmus.gateway")

_encode: Final = msgspec.json.Encoder().encode


class _Log:
    """The events of one background run, growing."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.events: list[bytes] = []
        self.first = 0
        self.over = False
        self._changed = asyncio.Event()

    def add(self, events: list[Event]) -> None:
        self.events += [_encode(event) for event in events]
        self._wake()

    def end(self) -> None:
        self.over = True
        self._wake()

    async def changed(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Background:
    """All background runs of this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: dict[str, _Log] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, run: Run, record: StoredResponse) -> None:
        """Store it as queued, then make it."""
        await self._store.save(record)
        self._logs[run.id] = _Log(record.owner)
        task = asyncio.create_task(self._carry_out(run), name=f"background {run.id}")
        self._tasks[run.id] = task

    def has(self, id: str, owner: str) -> bool:
        return id in self._logs and self._logs[id].owner == owner

    def follow(self, id: str, after: int) -> AsyncIterator[list[bytes]]:
        """Events above sequence number `after`, as they come, until the terminal one.

        The log is looked up now, not at the first read: the run may end in between.
        """
        return _read_on(self._logs[id], after + 1)

    async def ended(self, id: str) -> None:
        """Wait until the run is over, if it is one of ours."""
        task = self._tasks.get(id)
        if task is not None:
            await asyncio.wait([task])

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=5)

    async def _carry_out(self, run: Run) -> None:
        progress = self._logs[run.id]
        try:
            try:
                async for events in run.events():
                    progress.add(events)
                    if not run.finished:
                        await self._keep(run.id, progress)
            except UpstreamFailed as failure:
                progress.add(await run.refused(failure))
            await self._keep(run.id, progress)
        finally:
            progress.end()
            self._logs.pop(run.id, None)
            self._tasks.pop(run.id, None)

    async def _keep(self, id: str, progress: _Log) -> None:
        """What the store does not take now it is offered again with the next ones: the run itself goes on."""
        batch = tuple(progress.events[progress.first :])
        if not batch:
            return
        try:
            await self._store.append_events(id, EventBatch(progress.first, batch), owner=progress.owner)
        except IsthmusError as error:
            log.error("background.events.not_kept id=%s reason=%s", id, error)
        else:
            progress.first += len(batch)


async def _read_on(progress: _Log, position: int) -> AsyncIterator[list[bytes]]:
    while True:
        ready = progress.events[position:]
        if ready:
            position += len(ready)
            yield ready
        elif progress.over:
            return
        else:
            await progress.changed()
