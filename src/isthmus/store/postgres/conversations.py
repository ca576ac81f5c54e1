"""The conversations of the PostgreSQL store: each change under the lock of its conversation."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeVar

from isthmus.log import tell
from isthmus.ports import LOCAL, ConversationTurns, ItemPage, StoredConversation, conversation_lease
from isthmus.store.postgres import conversation_rows as rows
from isthmus.store.postgres import conversation_writes as writes
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import lock
from isthmus.store.postgres.pool import Operation, Pool
from isthmus.store.postgres.texts import name, text

_EXPORT_PAGE: Final = 8

log = logging.getLogger("isthmus.store")
T = TypeVar("T")


class PostgresConversations:
    """A part of the store; the rest of it brings what this needs."""

    pool: Pool
    _at: Callable[[], float | None]

    async def start_conversation(self, record: StoredConversation, items: Sequence[bytes] = ()) -> None:
        await self._within(record.id, partial(writes.start, record=record, items=items))

    async def conversation(self, id: str, *, owner: str = LOCAL) -> StoredConversation | None:
        return await self.pool.read(partial(rows.load, id=name(id), owner=owner))

    async def describe_conversation(self, id: str, metadata: bytes, *, owner: str = LOCAL) -> StoredConversation | None:
        return await self._within(id, partial(writes.describe, id=name(id), owner=owner, metadata=metadata))

    async def end_conversation(self, id: str, *, owner: str = LOCAL) -> bool:
        return await self._within(id, partial(writes.end, id=name(id), owner=owner))

    async def add_items(
        self, id: str, items: Sequence[bytes], *, owner: str = LOCAL, most: int, at: float = 0.0
    ) -> bool:
        return await self._within(
            id, lambda connection: writes.add(connection, name(id), owner, items, most, at, self._at())
        )

    async def remove_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bool:
        return await self._within(
            id, lambda connection: writes.take_out(connection, name(id), text(item_id), owner, self._at())
        )

    async def conversation_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bytes | None:
        return await self.pool.read(partial(rows.load_item, id=name(id), item_id=text(item_id), owner=owner))

    async def conversation_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        last = None if after is None else text(after)
        return await self.pool.read(
            partial(rows.load_page, id=name(id), owner=owner, limit=limit, after=last, order=order)
        )

    async def conversation_turns(
        self, id: str, *, owner: str = LOCAL, most: int, before: int | None = None
    ) -> ConversationTurns | None:
        return await self.pool.read(partial(rows.load_turns, id=name(id), owner=owner, most=most, before=before))

    async def export_conversations(self) -> AsyncIterator[bytes]:
        last, key = -1, 0
        while key != last:
            last = key
            key, lines, broken = await self.pool.read(partial(rows.load_after, key=last, count=_EXPORT_PAGE))
            for id, what in broken.items():
                tell(log, "error", "store.damaged", id=id, reason=what)
            for line in lines:
                yield line

    async def _within(self, id: str, change: Operation[T]) -> T:
        def locked(connection: Connection) -> T:
            lock(connection, conversation_lease(name(id)))
            return change(connection)

        return await self.pool.write(locked)
