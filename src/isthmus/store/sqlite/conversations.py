"""The conversations of the SQLite store: each question handed to a reader, each change to the writer."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final, Literal, TypeVar

from isthmus.errors import StoreDamaged
from isthmus.log import tell
from isthmus.ports import LOCAL, ConversationTurns, ItemPage, StoredConversation
from isthmus.store.packing import text
from isthmus.store.refusals import damaged_conversation
from isthmus.store.sqlite import conversation_rows as rows
from isthmus.store.sqlite import conversation_writes as writes
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer

_EXPORT_PAGE: Final = 8

log = logging.getLogger("isthmus.store")
T = TypeVar("T")


class SqliteConversations:
    """A part of the store; the rest of it brings what this needs."""

    writer: Writer
    readers: Readers
    _now: Callable[[], float]

    async def start_conversation(self, record: StoredConversation, items: Sequence[bytes] = ()) -> None:
        await self.writer.run(partial(writes.start, record=record, items=items))

    async def conversation(self, id: str, *, owner: str = LOCAL) -> StoredConversation | None:
        return await self._ask(id, partial(rows.load, id=text(id), owner=owner))

    async def describe_conversation(self, id: str, metadata: bytes, *, owner: str = LOCAL) -> StoredConversation | None:
        return await self.writer.run(partial(writes.describe, id=text(id), owner=owner, metadata=metadata))

    async def end_conversation(self, id: str, *, owner: str = LOCAL) -> bool:
        return await self.writer.run(partial(writes.end, id=text(id), owner=owner))

    async def add_items(
        self, id: str, items: Sequence[bytes], *, owner: str = LOCAL, most: int, at: float = 0.0
    ) -> bool:
        change = partial(writes.add, id=text(id), owner=owner, items=items, most=most, at=at, now=self._now)
        return await self.writer.run(change)

    async def remove_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bool:
        change = partial(writes.take_out, id=text(id), item_id=text(item_id), owner=owner, now=self._now)
        return await self.writer.run(change)

    async def conversation_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bytes | None:
        return await self._ask(id, partial(rows.load_item, id=text(id), item_id=text(item_id), owner=owner))

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
        return await self._ask(
            id, partial(rows.load_page, id=text(id), owner=owner, limit=limit, after=last, order=order)
        )

    async def conversation_turns(
        self, id: str, *, owner: str = LOCAL, most: int, before: int | None = None
    ) -> ConversationTurns | None:
        return await self._ask(id, partial(rows.load_turns, id=text(id), owner=owner, most=most, before=before))

    async def export_conversations(self) -> AsyncIterator[bytes]:
        last, key = -1, 0
        while key != last:
            last = key
            key, lines, broken = await self.readers.run(partial(rows.load_after, key=last, count=_EXPORT_PAGE))
            for id, what in broken.items():
                tell(log, "error", "store.damaged", id=id, reason=what)
            for line in lines:
                yield line

    async def _ask(self, id: str, query: Callable[[sqlite3.Connection], T]) -> T:
        """What is asked about one conversation; damage that only SQLite has met names it, too."""
        try:
            return await self.readers.run(query)
        except StoreDamaged as error:
            if "id" in error.metadata:
                raise
            raise damaged_conversation(id, error.message) from error
