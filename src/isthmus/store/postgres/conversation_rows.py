"""Everything that asks for conversations: plain functions inside a transaction that sees one moment."""

from __future__ import annotations

from typing import Final, Literal

from isthmus.ports import ConversationTurns, ItemPage, StoredConversation, conversation_lease
from isthmus.store.conversation_row import COLUMNS, Item, Row
from isthmus.store.listing import make_page, with_id
from isthmus.store.packing import read_piece
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import NOW
from isthmus.store.refusals import damaged, damaged_conversation, unknown_after
from isthmus.store.said import export_conversation

BEYOND: Final = 2**62


def find(connection: Connection, id: str, owner: str) -> Row | None:
    found = connection.execute(
        f"SELECT {COLUMNS} FROM conversations WHERE id = %s AND owner = %s", (id, owner)
    ).fetchone()
    if found is None:
        return None
    row = Row(*found)
    if (what := row.damage()) is not None:
        raise damaged_conversation(id, what)
    return row


def load(connection: Connection, id: str, owner: str) -> StoredConversation | None:
    row = find(connection, id, owner)
    return None if row is None else row.record


def load_turns(connection: Connection, id: str, owner: str, most: int, before: int | None) -> ConversationTurns | None:
    if (row := find(connection, id, owner)) is None:
        return None
    items = select(connection, row, "asc", most + 1, before=before)
    if before is None and len(items) != min(row.items, most + 1):
        raise damaged_conversation(id, f"{row.items - len(items)} of its items are missing")
    return ConversationTurns(tuple((item.whole(row), bool(item.ours)) for item in items), row.next)


def load_page(
    connection: Connection, id: str, owner: str, limit: int, after: str | None, order: Literal["asc", "desc"]
) -> ItemPage | None:
    if (row := find(connection, id, owner)) is None:
        return None
    behind = None if after is None else find_position(connection, row, after)
    if after is not None and behind is None:
        raise unknown_after(after)
    edge = {"above": behind} if order == "asc" else {"before": behind}
    items = select(connection, row, order, limit + 1, **edge)
    return make_page([(item.item_id, item.whole(row)) for item in items[:limit]], len(items) > limit)


def load_item(connection: Connection, id: str, item_id: str, owner: str) -> bytes | None:
    row = find(connection, id, owner)
    position = None if row is None else find_position(connection, row, item_id)
    if row is None or position is None:
        return None
    (item,) = select(connection, row, "asc", 1, above=position - 1)
    return with_id(item.whole(row), item_id)


def find_named(connection: Connection, item_id: str, owner: str) -> bytes | None:
    """The item that some conversation of this owner calls so."""
    found = connection.execute(
        "SELECT c.hash, c.data FROM conversation_items AS i JOIN conversations AS v ON v.key = i.conversation"
        " JOIN pieces AS c ON c.key = i.piece WHERE left(i.item_id, 100) = %s AND i.item_id = %s AND v.owner = %s"
        " ORDER BY i.conversation LIMIT 1",
        (item_id[:100], item_id, owner),
    ).fetchone()
    if found is None:
        return None
    content = read_piece(owner, False, *found)
    if content is None:
        raise damaged(item_id, "the item is not as it was written")
    return with_id(content, item_id)


def load_after(connection: Connection, key: int, count: int) -> tuple[int, list[bytes], dict[str, str]]:
    """The next conversations as lines of an export: the key to go on from, the lines, and what is damaged."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM conversations WHERE key > %s ORDER BY key LIMIT %s", (key, count)
    ).fetchall()
    lines: list[bytes] = []
    broken: dict[str, str] = {}
    for row in (Row(*each) for each in rows):
        if (what := damage_of(connection, row)) is not None:
            broken[row.id] = what
            continue
        items = [with_id(item.whole(row), item.item_id) for item in select(connection, row, "asc", BEYOND)]
        lines.append(export_conversation(row.record, items))
    return rows[-1][0] if rows else key, lines, broken


def damage_of(connection: Connection, row: Row) -> str | None:
    """What is wrong with a conversation, or with one of its items."""
    items = select(connection, row, "asc", BEYOND)
    broken = next((item for item in items if item.read(row) is None), None)
    if broken is not None:
        return f"its item `{broken.item_id}` is not as it was written"
    return row.damage() or (None if len(items) == row.items else "some of its items are missing")


def find_unused(connection: Connection, older_than: float, now: float | None) -> tuple[int, str] | None:
    """A conversation that was not used since then, and in which no turn is under way: its key and its id."""
    held = f"SELECT 1 FROM leases AS l WHERE l.owner = v.owner AND l.name = %(lease)s || v.id AND l.until > {NOW}"
    found = connection.execute(
        f"SELECT key, id FROM conversations AS v WHERE used_at < %(older)s AND NOT EXISTS ({held})"
        " ORDER BY used_at, key LIMIT 1",
        {"older": older_than, "lease": conversation_lease(""), "now": now},
    ).fetchone()
    return None if found is None else (found[0], found[1])


def select(
    connection: Connection,
    row: Row,
    order: Literal["asc", "desc"],
    limit: int,
    *,
    above: int | None = None,
    before: int | None = None,
) -> list[Item]:
    """Items in their order, as they are in the database."""
    rows = connection.execute(
        "SELECT i.position, i.item_id, i.ours, i.digest, c.hash, c.data"
        " FROM conversation_items AS i LEFT JOIN pieces AS c ON c.key = i.piece"
        f" WHERE i.conversation = %s AND i.position > %s AND i.position < %s ORDER BY i.position {order} LIMIT %s",
        (row.key, -1 if above is None else above, BEYOND if before is None else before, limit),
    )
    return [Item(*each) for each in rows]


def find_position(connection: Connection, row: Row, item_id: str) -> int | None:
    found = connection.execute(
        "SELECT position FROM conversation_items WHERE left(item_id, 100) = %s AND item_id = %s AND conversation = %s",
        (item_id[:100], item_id, row.key),
    ).fetchone()
    return None if found is None else found[0]
