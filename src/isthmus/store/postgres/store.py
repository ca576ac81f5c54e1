"""The PostgreSQL store: the contract of `ports.Store`, each method one transaction on one of a few connections."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final, Literal

from isthmus.log import tell
from isthmus.ports import (
    ANY_SIZE,
    APPENDING,
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
    StoreStats,
    conversation_lease,
    run_lease,
)
from isthmus.store.pieces import export_line, with_status
from isthmus.store.postgres import leases, reads, writes
from isthmus.store.postgres.changes import Changes
from isthmus.store.postgres.chats import PostgresChats
from isthmus.store.postgres.connect import Connection, Options
from isthmus.store.postgres.conversation_writes import append_turn
from isthmus.store.postgres.conversations import PostgresConversations
from isthmus.store.postgres.keys import PostgresKeys
from isthmus.store.postgres.learned import PostgresLearned
from isthmus.store.postgres.locks import lock
from isthmus.store.postgres.medium import Medium
from isthmus.store.postgres.migrations import migrate
from isthmus.store.postgres.outbox import PostgresOutbox, queue
from isthmus.store.postgres.pool import Operation, Pool
from isthmus.store.postgres.prune import drop_events, prune
from isthmus.store.postgres.requests import PostgresRequests
from isthmus.store.postgres.spending import PostgresSpending
from isthmus.store.postgres.texts import name as indexed
from isthmus.store.postgres.texts import text
from isthmus.store.rows import Selected, take_apart

_LARGEST_NUMBER: Final = 2**62
_EXPORT_PAGE: Final = 64
_EXPIRED_PAGE: Final = 8
_MOST_NAMED: Final = 1000
"""Damaged responses that the log names, each once."""

log = logging.getLogger("isthmus.store")
Timed = Callable[[str, float], None]
"""Hears how many seconds a `read` or a `write` took."""


class PostgresStore(
    PostgresChats,
    PostgresConversations,
    PostgresKeys,
    PostgresLearned,
    PostgresOutbox,
    PostgresRequests,
    PostgresSpending,
):
    def __init__(
        self,
        options: Options,
        *,
        connections: int = 8,
        queue_size: int = 1024,
        max_event_bytes: int = 16 * 1024 * 1024,
        poll_seconds: float = 1.0,
        retry_seconds: float = 0.25,
        now: Callable[[], float] | None = None,
        timed: Timed = lambda operation, seconds: None,
    ) -> None:
        """Connects and brings the schema up to date, in the calling thread: this is for the start of a process.

        The clock of the leases is the database's, unless `now` gives another one. A server that is away is tried again
        every `retry_seconds`. `timed` hears of every read and write.
        """
        medium = self._medium = Medium(options)
        with closing(medium.connect()) as connection:
            migrate(connection, options)
        self._max_event_bytes = max_event_bytes
        self._at: Callable[[], float | None] = now or (lambda: None)
        self._named: set[str] = set()
        self._changes = Changes(medium, poll_seconds=poll_seconds, retry_seconds=retry_seconds)
        self.pool = Pool(
            medium, connections=connections, queue_size=queue_size, timed=timed, changed=self._changes.changed
        )

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
        def save(connection: Connection) -> bool:
            lock(connection, run_lease(record.id))
            if record.conversation is not None and record.status in APPENDING:
                lock(connection, conversation_lease(indexed(record.conversation)))
            if not self._may_write(connection, record.id, record.owner, holder):
                return False
            saved = writes.save_response(connection, record, history)
            if saved is None:
                return False
            key, hashed = saved
            append_turn(connection, writes.as_stored(record), hashed)
            if events is not None:
                writes.append_events(connection, key, events, self._max_event_bytes)
            queue(connection, notices, self._at())
            return True

        return await self.pool.write(save, done=partial(_is_saved, record=record))

    async def load(self, id: str, *, owner: str = LOCAL) -> StoredResponse | None:
        return await self.pool.read(partial(reads.load_response, id=indexed(id), owner=owner))

    async def delete(self, id: str, *, owner: str = LOCAL) -> bool:
        change = partial(writes.delete_response, id=indexed(id), owner=owner)
        return await self._change(indexed(id), change, "deleted", owner=owner)

    async def chain(self, id: str, *, owner: str = LOCAL, max_depth: int = DEFAULT_MAX_DEPTH) -> list[StoredTurn]:
        depth = min(max_depth, _LARGEST_NUMBER)
        return await self.pool.read(partial(reads.load_chain, id=indexed(id), owner=owner, max_depth=depth))

    async def items(self, ids: Sequence[str], *, owner: str = LOCAL, max_bytes: int = ANY_SIZE) -> dict[str, bytes]:
        query = partial(reads.find_items, ids=[text(id) for id in ids], owner=owner, max_bytes=max_bytes)
        return await self.pool.read(query)

    async def list_input_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        query = partial(reads.list_input_items, id=indexed(id), owner=owner, limit=limit, after=after, order=order)
        return await self.pool.read(query)

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
        def change(connection: Connection) -> bool:
            record = reads.load_response(connection, indexed(id), owner)
            if record is None or (only_from and record.status not in only_from):
                return False
            if writes.save_response(connection, with_status(record, status, fields)) is None:
                return False
            queue(connection, notices, self._at())
            return True

        return await self._change(
            indexed(id), change, "NOT deleted AND status = %(status)s", owner=owner, status=status
        )

    async def append_events(self, id: str, batch: EventBatch, *, owner: str = LOCAL, holder: str | None = None) -> bool:
        def append(connection: Connection) -> bool:
            if not self._may_write(connection, indexed(id), owner, holder):
                return False
            if (key := writes.find_key(connection, indexed(id), owner)) is None:
                return False
            writes.append_events(connection, key, batch, self._max_event_bytes)
            return True

        following = batch.first + len(batch.events)
        told = "EXISTS (SELECT 1 FROM streams WHERE response = key AND next = %(next)s)"
        return await self._change(indexed(id), append, told, owner=owner, next=following)

    async def events(self, id: str, *, owner: str = LOCAL, after: int = -1) -> list[bytes]:
        bounded = max(-1, min(after, _LARGEST_NUMBER))
        return await self.pool.read(partial(reads.load_events, id=indexed(id), owner=owner, after=bounded))

    async def claim(self, name: str, *, owner: str = LOCAL, holder: str, seconds: float) -> bool:
        return await self.pool.write(
            lambda connection: leases.claim(connection, owner, indexed(name), holder, seconds, self._at())
        )

    async def renew(self, holder: str, *, seconds: float) -> Held:
        renewed = await self.pool.write(lambda connection: leases.renew(connection, holder, seconds, self._at()))
        return leases.as_held(renewed)

    async def release(self, name: str, *, owner: str = LOCAL, holder: str) -> None:
        await self.pool.write(partial(leases.release, owner=owner, name=indexed(name), holder=holder))

    async def signal(self, name: str, word: str, *, owner: str = LOCAL) -> bool:
        return await self.pool.write(lambda connection: leases.tell(connection, owner, indexed(name), word, self._at()))

    async def expired(self, *, most: int = EXPIRED_AT_ONCE) -> list[StoredResponse]:
        """In steps: each of them may be as large as a request, and those that are damaged stay where they are."""
        found: list[StoredResponse] = []
        last, key = -1, 0
        while key != last and len(found) < most:
            last, count = key, min(most, _EXPIRED_PAGE)
            key, page = await self.pool.read(partial(reads.load_expired, key=last, count=count, now=self._at()))
            found += self.sound(page)
        return found[:most]

    async def watch(self, seconds: float, *, since: int | None = None) -> int:
        return await self._changes.watch(seconds, since)

    async def stats(self) -> StoreStats:
        return await self.pool.read(reads.measure)

    async def prune(
        self,
        *,
        older_than: float | None = None,
        max_bytes: int | None = None,
        events_older_than: float | None = None,
        conversations_older_than: float | None = None,
    ) -> Pruned:
        if events_older_than is not None:
            await drop_events(self.pool, events_older_than)
        return await prune(
            self.pool,
            older_than=older_than,
            max_bytes=max_bytes,
            conversations=conversations_older_than,
            now=self._at,
        )

    async def export(self) -> AsyncIterator[bytes]:
        """In pages, each a moment of its own: a long export keeps the server from tidying nothing."""
        last, key = -1, 0
        while key != last:
            last = key
            key, page = await self.pool.read(partial(reads.load_after, key=last, count=_EXPORT_PAGE))
            for record in self.sound(page):
                yield export_line(record)

    async def aclose(self) -> None:
        await self.pool.aclose()
        await self._changes.aclose()

    def sound(self, selected: Selected) -> list[StoredResponse]:
        """Those that are as they were written; the log names the others, each once."""
        found, broken = selected
        for id, what in broken.items():
            if id not in self._named and len(self._named) < _MOST_NAMED:
                self._named.add(id)
                tell(log, "error", "store.damaged", id=id, reason=what)
        return found

    async def _change(self, id: str, change: Operation[bool], so: str, **facts: Any) -> bool:
        """A change of one response, under its lock; `so` is what is true of its row when it is done."""

        def locked(connection: Connection) -> bool:
            lock(connection, run_lease(id))
            return change(connection)

        def done(connection: Connection) -> bool:
            lock(connection, run_lease(id))
            row = f"SELECT 1 FROM responses WHERE id = %(id)s AND owner = %(owner)s AND {so}"
            return connection.execute(row, {"id": id, **facts}).fetchone() is not None

        return await self.pool.write(locked, done=done)

    def _may_write(self, connection: Connection, id: str, owner: str, holder: str | None) -> bool:
        return holder is None or leases.may_write(connection, owner, id, holder, self._at())


def _is_saved(connection: Connection, record: StoredResponse) -> bool:
    """Whether it stands there as it is; its digest knows all of it."""
    lock(connection, run_lease(record.id))
    stored = writes.as_stored(record)
    found = connection.execute(
        "SELECT row_digest FROM responses WHERE id = %s AND owner = %s", (stored.id, stored.owner)
    ).fetchone()
    columns, _ = take_apart(stored)
    return found is not None and found[0] == columns[-1]
