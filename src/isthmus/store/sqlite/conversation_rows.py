"""Conversations as rows, and everything that asks for them: plain functions inside a transaction.

A conversation is a row that says where it stands, and a row for each item: its position, its id, and the piece that it
shares with the responses that say the same. Everything is found by an index, so that a page costs what it holds,
however long the conversation is. Rows have digests, as everything has that is read back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from isthmus.ports import ConversationTurns, ItemPage, StoredConversation, conversation_lease
from isthmus.store.listing import make_page, with_id
from isthmus.store.refusals import damaged, damaged_conversation, unknown_after
from isthmus.store.said import export_conversation
from isthmus.store.sqlite.packing import digest_conversation, digest_place, read_piece

COLUMNS: Final = "key, id, owner, created_at, used_at, next, items, metadata, digest"
_ROW_DAMAGED: Final = "its row is not as it was written"
_BEYOND: Final = 2**62


class Row(NamedTuple):
    key: int
    id: str
    owner: str
    created_at: float
    used_at: float
    next: int
    """The position of the next item: it grows with every change, so that it says where the conversation stands."""
    items: int
    """How many there are."""
    metadata: bytes
    digest: bytes = b""

    @property
    def seal(self) -> bytes:
        return digest_conversation(*self[1:8])

    @property
    def record(self) -> StoredConversation:
        return StoredConversation(self.id, self.created_at, bytes(self.metadata), self.owner)

    def damage(self) -> str | None:
        try:
            return None if self.digest == self.seal else _ROW_DAMAGED
        except TypeError:  # SQLite stores any kind of value in any column
            return _ROW_DAMAGED


class _Item(NamedTuple):
    position: int
    item_id: str
    ours: int
    digest: bytes
    hash: bytes | None
    data: bytes | None

    def read(self, row: Row) -> bytes | None:
        """What it says; `None` if that is not what was written."""
        if self.hash is None or self.data is None:
            return None
        try:
            placed = digest_place(row.id, self.position, self.item_id, self.ours, self.hash) == self.digest
        except TypeError:
            return None
        return read_piece(row.owner, False, self.hash, self.data) if placed else None


def find(connection: sqlite3.Connection, id: str, owner: str) -> Row | None:
    found = connection.execute(
        f"SELECT {COLUMNS} FROM conversations WHERE id = ? AND owner = ?", (id, owner)
    ).fetchone()
    if found is None:
        return None
    row = Row(*found)
    if (what := row.damage()) is not None:
        raise damaged_conversation(id, what)
    return row


def load(connection: sqlite3.Connection, id: str, owner: str) -> StoredConversation | None:
    row = find(connection, id, owner)
    return None if row is None else row.record


def load_turns(
    connection: sqlite3.Connection, id: str, owner: str, most: int, before: int | None
) -> ConversationTurns | None:
    if (row := find(connection, id, owner)) is None:
        return None
    items = select(connection, row, "asc", most + 1, before=before)
    if before is None and len(items) != min(row.items, most + 1):
        raise damaged_conversation(id, f"{row.items - len(items)} of its items are missing")
    return ConversationTurns(tuple((_whole(row, item), bool(item.ours)) for item in items), row.next)


def load_page(
    connection: sqlite3.Connection, id: str, owner: str, limit: int, after: str | None, order: Literal["asc", "desc"]
) -> ItemPage | None:
    if (row := find(connection, id, owner)) is None:
        return None
    behind = None if after is None else find_position(connection, row, after)
    if after is not None and behind is None:
        raise unknown_after(after)
    edge = {"above": behind} if order == "asc" else {"before": behind}
    items = select(connection, row, order, limit + 1, **edge)
    return make_page([(item.item_id, _whole(row, item)) for item in items[:limit]], len(items) > limit)


def load_item(connection: sqlite3.Connection, id: str, item_id: str, owner: str) -> bytes | None:
    row = find(connection, id, owner)
    position = None if row is None else find_position(connection, row, item_id)
    if row is None or position is None:
        return None
    (item,) = select(connection, row, "asc", 1, above=position - 1)
    return with_id(_whole(row, item), item_id)


def find_named(connection: sqlite3.Connection, item_id: str, owner: str) -> bytes | None:
    """The item that some conversation of this owner calls so."""
    found = connection.execute(
        "SELECT c.hash, c.data FROM conversation_items AS i JOIN conversations AS v ON v.key = i.conversation"
        " JOIN pieces AS c ON c.key = i.piece WHERE i.item_id = ? AND v.owner = ? ORDER BY i.conversation LIMIT 1",
        (item_id, owner),
    ).fetchone()
    if found is None:
        return None
    content = read_piece(owner, False, *found)
    if content is None:
        raise damaged(item_id, "the item is not as it was written")
    return with_id(content, item_id)


def load_after(connection: sqlite3.Connection, key: int, count: int) -> tuple[int, list[bytes], dict[str, str]]:
    """The next conversations as lines of an export: the key to go on from, the lines, and what is damaged."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM conversations WHERE key > ? ORDER BY key LIMIT ?", (key, count)
    ).fetchall()
    lines: list[bytes] = []
    broken: dict[str, str] = {}
    for row in (Row(*each) for each in rows):
        if (what := damage_of(connection, row)) is not None:
            broken[row.id] = what
            continue
        items = [with_id(_whole(row, item), item.item_id) for item in select(connection, row, "asc", _BEYOND)]
        lines.append(export_conversation(row.record, items))
    return rows[-1][0] if rows else key, lines, broken


def damage_of(connection: sqlite3.Connection, row: Row) -> str | None:
    """What is wrong with a conversation, or with one of its items."""
    items = select(connection, row, "asc", _BEYOND)
    broken = next((item for item in items if item.read(row) is None), None)
    if broken is not None:
        return f"its item `{broken.item_id}` is not as it was written"
    return row.damage() or (None if len(items) == row.items else "some of its items are missing")


def find_unused(connection: sqlite3.Connection, older_than: float, now: float, count: int) -> list[int]:
    """Conversations that were not used since then, and in which no turn is under way."""
    held = "SELECT 1 FROM leases AS l WHERE l.owner = v.owner AND l.name = ? || v.id AND l.until > ?"
    rows = connection.execute(
        f"SELECT key FROM conversations AS v WHERE used_at < ? AND NOT EXISTS ({held}) ORDER BY used_at, key LIMIT ?",
        (older_than, conversation_lease(""), now, count),
    )
    return [key for (key,) in rows]


def select(
    connection: sqlite3.Connection,
    row: Row,
    order: Literal["asc", "desc"],
    limit: int,
    *,
    above: int | None = None,
    before: int | None = None,
) -> list[_Item]:
    """Items in their order, as they are in the file."""
    rows: Iterable[tuple[int, str, int, bytes, bytes | None, bytes | None]] = connection.execute(
        "SELECT i.position, i.item_id, i.ours, i.digest, c.hash, c.data"
        " FROM conversation_items AS i LEFT JOIN pieces AS c ON c.key = i.piece"
        f" WHERE i.conversation = ? AND i.position > ? AND i.position < ? ORDER BY i.position {order} LIMIT ?",
        (row.key, -1 if above is None else above, _BEYOND if before is None else before, limit),
    )
    return [_Item(*each) for each in rows]


def find_position(connection: sqlite3.Connection, row: Row, item_id: str) -> int | None:
    found = connection.execute(
        "SELECT position FROM conversation_items WHERE item_id = ? AND conversation = ?", (item_id, row.key)
    ).fetchone()
    return None if found is None else found[0]


def _whole(row: Row, item: _Item) -> bytes:
    content = item.read(row)
    if content is None:
        raise damaged_conversation(row.id, f"its item `{item.item_id}` is not as it was written")
    return content
