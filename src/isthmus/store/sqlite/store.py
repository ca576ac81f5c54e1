"""The SQLite store: the contract of `ports.Store`, each question handed to a reader, each change to the writer."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from isthmus.bridge.types.plan import Lesson
from isthmus.errors import StoreDamaged
from isthmus.log import tell
from isthmus.ports import (
    ANY_SIZE,
    DEFAULT_MAX_DEPTH,
    EXPIRED_AT_ONCE,
    LOCAL,
    EventBatch,
    Held,
    ItemPage,
    Notice,
    Pruned,
    StoredResponse,
    StoredTurn,
    StoredWord,
    StoreStats,
)
from isthmus.store.packing import text
from isthmus.store.pieces import export_line, with_status
from isthmus.store.refusals import damaged
from isthmus.store.rows import Selected
from isthmus.store.sqlite import learned, leases, reads, streams, writes
from isthmus.store.sqlite.changes import Changes
from isthmus.store.sqlite.chats import SqliteChats
from isthmus.store.sqlite.connect import Durability
from isthmus.store.sqlite.conversation_writes import append_turn
from isthmus.store.sqlite.conversations import SqliteConversations
from isthmus.store.sqlite.keys import SqliteKeys
from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.outbox import SqliteOutbox, queue
from isthmus.store.sqlite.probe import probe
from isthmus.store.sqlite.prune import drop_events, prune
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.requests import SqliteRequests
from isthmus.store.sqlite.spending import SqliteSpending
from isthmus.store.sqlite.writer import Operation, Writer

_LARGEST_NUMBER: Final = 2**62
_EXPORT_PAGE: Final = 64
_EXPIRED_PAGE: Final = 8
_MOST_NAMED: Final = 1000
"""Damaged responses that the log names, each once."""

log = logging.getLogger("isthmus.store")
T = TypeVar("T")
Timed = Callable[[str, float], None]
"""Hears how many seconds a `read` or a `write` took."""


class SqliteStore(SqliteChats, SqliteConversations, SqliteKeys, SqliteOutbox, SqliteRequests, SqliteSpending):
    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "process",
        readers: int = 2,
        queue_size: int = 1024,
        busy_seconds: float = 10.0,
        max_event_bytes: int = 16 * 1024 * 1024,
        retry_seconds: float = 1.0,
        now: Callable[[], float] = time.time,
        timed: Timed = lambda operation, seconds: None,
    ) -> None:
        """Opens the file and brings it up to date, in the calling thread: this is for the start of a process.

        `now` is the clock of the leases; it is asked inside transactions, never by callers. A file that cannot be used
        any more is tried again every `retry_seconds`. `timed` hears of every read and write.
        """
        medium = self._medium = Medium(path, durability, busy_seconds)
        connection = medium.open()
        self._max_event_bytes = max_event_bytes
        self._now = now
        self._named: set[str] = set()
        self.writer = Writer(
            connection,
            medium,
            probe=probe,
            queue_size=queue_size,
            retry_seconds=retry_seconds,
            timed=partial(timed, "write"),
        )
        self.readers = Readers(medium, threads=readers, timed=partial(timed, "read"))
        self._changes = Changes(medium)

    async def check(self) -> None:
        self._medium.check()

    async def save(
        self,
        record: StoredResponse,
        *,
        events: EventBatch | None = None,
        holder: str | None = None,
        history: Callable[[], tuple[bytes, ...]] | None = None,
        notices: Sequence[Notice] = (),
    ) -> bool:
        save = partial(_save, record=record, events=events, max_bytes=self._max_event_bytes, history=history)
        both = self._with_notices(save, notices)
        return await self.writer.run(self._as_holder(both, record.id, record.owner, holder))

    async def load(self, id: str, *, owner: str = LOCAL) -> StoredResponse | None:
        return await self._read(id, partial(reads.load_response, id=text(id), owner=owner))

    async def delete(self, id: str, *, owner: str = LOCAL) -> bool:
        return await self.writer.run(partial(writes.delete_response, id=text(id), owner=owner))

    async def chain(self, id: str, *, owner: str = LOCAL, max_depth: int = DEFAULT_MAX_DEPTH) -> list[StoredTurn]:
        depth = min(max_depth, _LARGEST_NUMBER)
        return await self._read(id, partial(reads.load_chain, id=text(id), owner=owner, max_depth=depth))

    async def items(self, ids: Sequence[str], *, owner: str = LOCAL, max_bytes: int = ANY_SIZE) -> dict[str, bytes]:
        query = partial(reads.find_items, ids=[text(id) for id in ids], owner=owner, max_bytes=max_bytes)
        return await self.readers.run(query)

    async def list_input_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        query = partial(reads.list_input_items, id=text(id), owner=owner, limit=limit, after=after, order=order)
        return await self._read(id, query)

    async def update_status(
        self,
        id: str,
        status: str,
        *,
        owner: str = LOCAL,
        only_from: Collection[str] = (),
        fields: Mapping[str, Any] | None = None,
        notices: Sequence[Notice] = (),
    ) -> bool:
        change = partial(
            _update_status, id=text(id), owner=owner, status=status, only_from=tuple(only_from), fields=fields
        )
        return await self.writer.run(self._with_notices(change, notices))

    async def append_events(self, id: str, batch: EventBatch, *, owner: str = LOCAL, holder: str | None = None) -> bool:
        change = partial(_append_events, id=text(id), owner=owner, batch=batch, max_bytes=self._max_event_bytes)
        return await self.writer.run(self._as_holder(change, text(id), owner, holder))

    async def events(self, id: str, *, owner: str = LOCAL, after: int = -1) -> list[bytes]:
        bounded = max(-1, min(after, _LARGEST_NUMBER))
        return await self._read(id, partial(streams.load_events, id=text(id), owner=owner, after=bounded))

    async def claim(self, name: str, *, owner: str = LOCAL, holder: str, seconds: float) -> bool:
        return await self.writer.run(
            partial(leases.claim, owner=owner, name=text(name), holder=holder, seconds=seconds, now=self._now)
        )

    async def renew(self, holder: str, *, seconds: float) -> Held:
        return await self.writer.run(partial(leases.renew, holder=holder, seconds=seconds, now=self._now))

    async def release(self, name: str, *, owner: str = LOCAL, holder: str) -> None:
        await self.writer.run(partial(leases.release, owner=owner, name=text(name), holder=holder))

    async def signal(self, name: str, word: str, *, owner: str = LOCAL) -> bool:
        tell = partial(leases.tell, owner=owner, name=text(name), word=word, now=self._now)
        return await self.writer.run(tell)

    async def expired(self, *, most: int = EXPIRED_AT_ONCE) -> list[StoredResponse]:
        """In steps: each of them may be as large as a request, and those that are damaged stay where they are."""
        found: list[StoredResponse] = []
        last, key = -1, 0
        while key != last and len(found) < most:
            last = key
            query = partial(reads.load_expired, key=last, count=min(most, _EXPIRED_PAGE), now=self._now)
            key, page = await self.readers.run(query)
            found += self.sound(page)
        return found[:most]

    async def watch(self, seconds: float, *, since: int | None = None) -> int:
        return await self._changes.watch(seconds, since)

    async def learn(self, lesson: Lesson, *, since: float = 0.0, most: int = 1000) -> None:
        lesson = replace(lesson, model=text(lesson.model))
        await self.writer.run(partial(writes.keep_lesson, lesson=lesson, since=since, most=most))

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        query = partial(learned.load_lessons, provider=provider, model=text(model), since=since)
        return await self.readers.run(query)

    async def hear(self, word: StoredWord, *, since: float = 0.0, most: int = 200) -> None:
        await self.writer.run(partial(writes.keep_word, word=word, since=since, most=most))

    async def words(self, *, since: float = 0.0) -> list[StoredWord]:
        return await self.readers.run(partial(learned.load_words, since=since))

    async def stats(self) -> StoreStats:
        return await self.readers.run(reads.measure)

    async def prune(
        self,
        *,
        older_than: float | None = None,
        max_bytes: int | None = None,
        events_older_than: float | None = None,
        conversations_older_than: float | None = None,
    ) -> Pruned:
        if events_older_than is not None:
            await drop_events(self.readers, self.writer, events_older_than)
        return await prune(
            self.readers,
            self.writer,
            older_than=older_than,
            max_bytes=max_bytes,
            conversations=conversations_older_than,
            now=self._now,
        )

    async def export(self) -> AsyncIterator[bytes]:
        """In pages, each a moment of its own: a long export does not hold the file back from tidying its WAL."""
        last, key = -1, 0
        while key != last:
            last = key
            key, page = await self.readers.run(partial(reads.load_after, key=last, count=_EXPORT_PAGE))
            for record in self.sound(page):
                yield export_line(record)

    async def aclose(self) -> None:
        await self._changes.aclose()
        await self.readers.aclose()
        # Last, because the last connection to close folds the WAL into the file.
        await self.writer.aclose()

    async def _read(self, id: str, query: Callable[[sqlite3.Connection], T]) -> T:
        """What is asked about one response; damage that only SQLite has met names it, too."""
        try:
            return await self.readers.run(query)
        except StoreDamaged as error:
            if "id" in error.metadata:
                raise
            raise damaged(id, error.message) from error

    def sound(self, selected: Selected) -> list[StoredResponse]:
        """Those that are as they were written; the log names the others, each once."""
        found, broken = selected
        for id, what in broken.items():
            if id not in self._named and len(self._named) < _MOST_NAMED:
                self._named.add(id)
                tell(log, "error", "store.damaged", id=id, reason=what)
        return found

    def _with_notices(self, change: Operation[bool], notices: Sequence[Notice]) -> Operation[bool]:
        """The change, and if it was made the notices that tell of it."""
        if not notices:
            return change

        def both(connection: sqlite3.Connection) -> bool:
            if changed := change(connection):
                queue(connection, notices, self._now)
            return changed

        return both

    def _as_holder(self, change: Operation[bool], id: str, owner: str, holder: str | None) -> Operation[bool]:
        """The change, unless the response is no longer for this holder to write."""
        if holder is None:
            return change
        may_write = partial(leases.may_write, owner=owner, id=id, holder=holder, now=self._now)
        return lambda connection: may_write(connection) and change(connection)


def _save(
    connection: sqlite3.Connection,
    record: StoredResponse,
    events: EventBatch | None,
    max_bytes: int,
    history: writes.History | None,
) -> bool:
    key = writes.save_response(connection, record, history)
    if key is not None:
        append_turn(connection, key, record)
    if key is not None and events is not None:
        writes.append_events(connection, key, events, max_bytes)
    return key is not None


def _update_status(
    connection: sqlite3.Connection,
    id: str,
    owner: str,
    status: str,
    only_from: tuple[str, ...],
    fields: Mapping[str, Any] | None,
) -> bool:
    record = reads.load_response(connection, id, owner)
    if record is None or (only_from and record.status not in only_from):
        return False
    return writes.save_response(connection, with_status(record, status, fields)) is not None


def _append_events(connection: sqlite3.Connection, id: str, owner: str, batch: EventBatch, max_bytes: int) -> bool:
    if (key := writes.find_key(connection, id, owner)) is None:
        return False
    writes.append_events(connection, key, batch, max_bytes)
    return True
