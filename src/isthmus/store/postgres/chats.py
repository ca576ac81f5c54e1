"""Chat completions in the database: rows like any response, and beside them what they are listed by."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

import msgspec

from isthmus.ports import LOCAL, ChatPage, StoredResponse, run_lease
from isthmus.store.pieces import with_field
from isthmus.store.postgres import reads, writes
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import lock
from isthmus.store.postgres.pool import Pool
from isthmus.store.postgres.texts import name, text
from isthmus.store.refusals import no_such_chat
from isthmus.store.rows import Selected

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class PostgresChats:
    """`ports.Chats`, for the store to have."""

    pool: Pool

    @abstractmethod
    def sound(self, selected: Selected) -> list[StoredResponse]:
        """Those that are as they were written."""

    async def save_chat(self, record: StoredResponse, metadata: Mapping[str, str]) -> None:
        await self.pool.write(partial(_save, record=record, metadata=metadata))

    async def update_chat(self, id: str, metadata: Mapping[str, str], *, owner: str = LOCAL) -> StoredResponse | None:
        return await self.pool.write(partial(_update, id=name(id), owner=owner, metadata=metadata))

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
        selected, has_more = await self.pool.read(query)
        return ChatPage(tuple(self.sound(selected)), has_more)


def _save(connection: Connection, record: StoredResponse, metadata: Mapping[str, str]) -> None:
    lock(connection, run_lease(record.id))
    saved = writes.save_response(connection, record)
    if saved is not None:
        connection.execute(
            "INSERT INTO chats (response, owner, model, metadata) VALUES (%s, %s, %s, %s::jsonb) ON CONFLICT (response)"
            " DO UPDATE SET owner = excluded.owner, model = excluded.model, metadata = excluded.metadata",
            (saved[0], record.owner, text(record.model), _json(metadata)),
        )


def _update(connection: Connection, id: str, owner: str, metadata: Mapping[str, str]) -> StoredResponse | None:
    lock(connection, run_lease(id))
    record = reads.load_response(connection, id, owner)
    if record is None or _key(connection, id, owner) is None:
        return None
    changed = with_field(record, "metadata", metadata)
    _save(connection, changed, metadata)
    return changed


def _list(
    connection: Connection,
    owner: str,
    limit: int,
    after: str | None,
    order: Literal["asc", "desc"],
    model: str | None,
    metadata: Mapping[str, str],
) -> tuple[Selected, bool]:
    where, values = ["owner = %s"], [owner]
    if after is not None:
        at = _key(connection, name(after), owner)
        if at is None:
            raise no_such_chat(after)
        where.append(f"response {'>' if order == 'asc' else '<'} {at}")
    if model is not None:
        where.append("model = %s")
        values.append(text(model))
    if metadata:
        where.append("metadata @> %s::jsonb")
        values.append(_json(metadata))
    rows = connection.execute(
        f"SELECT response FROM chats WHERE {' AND '.join(where)} ORDER BY response {order} LIMIT {limit + 1}", values
    )
    keys = [key for (key,) in rows]
    return reads.load_rows(connection, keys[:limit]), len(keys) > limit


def _json(metadata: Mapping[str, str]) -> str:
    shown: dict[str, Any] = {text(key): text(value) for key, value in metadata.items()}
    return _encode(shown).decode()


def _key(connection: Connection, id: str, owner: str) -> int | None:
    found = connection.execute(
        "SELECT c.response FROM chats AS c JOIN responses AS r ON r.key = c.response WHERE r.id = %s AND c.owner = %s",
        (id, owner),
    ).fetchone()
    return found[0] if found else None
