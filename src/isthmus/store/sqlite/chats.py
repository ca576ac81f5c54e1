"""Chat completions in the file: rows like any response, and beside them what they are listed by.

`chats` is an index that SQLite itself filters, without any row being unpacked: the model, and the metadata as JSON.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

import msgspec

from isthmus.ports import LOCAL, ChatPage, StoredResponse
from isthmus.store.packing import text
from isthmus.store.pieces import with_field
from isthmus.store.refusals import no_such_chat
from isthmus.store.rows import Selected
from isthmus.store.sqlite import reads, writes
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class SqliteChats:
    """`ports.Chats`, for the store to have."""

    readers: Readers
    writer: Writer

    @abstractmethod
    def sound(self, selected: Selected) -> list[StoredResponse]:
        """Those that are as they were written."""

    async def save_chat(self, record: StoredResponse, metadata: Mapping[str, str]) -> None:
        await self.writer.run(partial(_save, record=record, metadata=metadata))

    async def update_chat(self, id: str, metadata: Mapping[str, str], *, owner: str = LOCAL) -> StoredResponse | None:
        return await self.writer.run(partial(_update, id=text(id), owner=owner, metadata=metadata))

    async def list_chats(
        self,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        model: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ChatPage:
        query = partial(_list, owner=owner, limit=limit, after=after, order=order, model=model, metadata=metadata or {})
        selected, has_more = await self.readers.run(query)
        return ChatPage(tuple(self.sound(selected)), has_more)


def _save(connection: sqlite3.Connection, record: StoredResponse, metadata: Mapping[str, str]) -> None:
    key = writes.save_response(connection, record)
    if key is not None:
        connection.execute(
            "INSERT OR REPLACE INTO chats (response, owner, model, metadata) VALUES (?, ?, ?, ?)",
            (key, record.owner, text(record.model), _encode(metadata).decode()),
        )


def _update(connection: sqlite3.Connection, id: str, owner: str, metadata: Mapping[str, str]) -> StoredResponse | None:
    record = reads.load_response(connection, id, owner)
    if record is None or _key(connection, id, owner) is None:
        return None
    changed = with_field(record, "metadata", metadata)
    _save(connection, changed, metadata)
    return changed


def _list(
    connection: sqlite3.Connection,
    owner: str,
    limit: int,
    after: str | None,
    order: Literal["asc", "desc"],
    model: str | None,
    metadata: Mapping[str, str],
) -> tuple[Selected, bool]:
    where, values = ["owner = ?"], [owner]
    if after is not None:
        at = _key(connection, text(after), owner)
        if at is None:
            raise no_such_chat(after)
        where.append(f"response {'>' if order == 'asc' else '<'} {at}")
    if model is not None:
        where.append("model = ?")
        values.append(text(model))
    for name, value in metadata.items():
        # A path could not name a key with a quotation mark in it.
        where.append("EXISTS (SELECT 1 FROM json_each(metadata) WHERE key = ? AND value = ?)")
        values += [text(name), text(value)]
    rows = connection.execute(
        f"SELECT response FROM chats WHERE {' AND '.join(where)} ORDER BY response {order} LIMIT {limit + 1}", values
    )
    keys = [key for (key,) in rows]
    return reads.load_rows(connection, keys[:limit]), len(keys) > limit


def _key(connection: sqlite3.Connection, id: str, owner: str) -> int | None:
    found = connection.execute(
        "SELECT c.response FROM chats AS c JOIN responses AS r ON r.key = c.response WHERE r.id = ? AND c.owner = ?",
        (id, owner),
    ).fetchone()
    return found[0] if found else None
