"""Everything that changes a conversation, as operations for the writer: plain functions inside its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from isthmus.ports import APPENDING, StoredConversation, StoredResponse, conversation_lease, conversation_locked
from isthmus.store.conversation_row import Row
from isthmus.store.packing import digest_place, hash_piece, read_piece
from isthmus.store.pieces import INPUT, OUTPUT, Piece, own_id
from isthmus.store.refusals import conversation_moved, taken_id, too_many_items
from isthmus.store.said import MOMENTARY, kind_of, name_said
from isthmus.store.sqlite.conversation_rows import find, find_position
from isthmus.store.sqlite.writes import drop_unused, keep_piece


def start(connection: sqlite3.Connection, record: StoredConversation, items: Sequence[bytes]) -> None:
    row = Row(0, record.id, record.owner, record.created_at, record.created_at, 0, 0, record.metadata)
    cursor = connection.execute(
        "INSERT INTO conversations (id, owner, created_at, used_at, next, items, metadata, digest)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*row[1:8], row.seal),
    )
    assert cursor.lastrowid is not None
    _add(connection, row._replace(key=cursor.lastrowid), items)


def describe(connection: sqlite3.Connection, id: str, owner: str, metadata: bytes) -> StoredConversation | None:
    if (row := find(connection, id, owner)) is None:
        return None
    return write_row(connection, row._replace(metadata=metadata)).record


def end(connection: sqlite3.Connection, id: str, owner: str) -> bool:
    """Also one that is damaged: whoever wants it gone is not to be kept from it."""
    found = connection.execute("SELECT key FROM conversations WHERE id = ? AND owner = ?", (id, owner)).fetchone()
    if found is None:
        return False
    remove(connection, found[0])
    return True


def remove(connection: sqlite3.Connection, key: int) -> None:
    held = [
        piece
        for (piece,) in connection.execute(
            "SELECT DISTINCT piece FROM conversation_items WHERE conversation = ?", (key,)
        )
    ]
    connection.execute("DELETE FROM conversation_items WHERE conversation = ?", (key,))
    connection.execute("DELETE FROM conversations WHERE key = ?", (key,))
    drop_unused(connection, held)


def add(
    connection: sqlite3.Connection,
    id: str,
    owner: str,
    items: Sequence[bytes],
    most: int,
    at: float,
    now: Callable[[], float],
) -> bool:
    if (row := find(connection, id, owner)) is None:
        return False
    _refuse_locked(connection, row, now)
    if row.items + len(items) > most:
        raise too_many_items(id, most)
    _add(connection, row._replace(used_at=max(row.used_at, at)), items)
    return True


def take_out(connection: sqlite3.Connection, id: str, item_id: str, owner: str, now: Callable[[], float]) -> bool:
    if (row := find(connection, id, owner)) is None:
        return False
    found = connection.execute(
        "SELECT position, piece FROM conversation_items WHERE item_id = ? AND conversation = ?", (item_id, row.key)
    ).fetchone()
    if found is None:
        return False
    _refuse_locked(connection, row, now)
    position, piece = found
    connection.execute("DELETE FROM conversation_items WHERE conversation = ? AND position = ?", (row.key, position))
    drop_unused(connection, [piece])
    write_row(connection, row._replace(next=row.next + 1, items=row.items - 1))
    return True


def append_turn(connection: sqlite3.Connection, key: int, record: StoredResponse) -> None:
    """What a response says is added to its conversation; `key` is the row of the response, which is written already."""
    if record.conversation is None or record.status not in APPENDING:
        return
    if (row := find(connection, record.conversation, record.owner)) is None:
        return
    if row.next != record.conversation_at:
        raise conversation_moved(row.id)
    parts = connection.execute(
        "SELECT p.place, p.position, p.piece, c.item_id, c.hash FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response = ? AND p.place <= ? ORDER BY p.place, p.position",
        (key, OUTPUT),
    ).fetchall()
    next = row.next
    for place, position, piece, item_id, hash in parts:
        if place == INPUT and kind_of(record.input[position]) in MOMENTARY:
            continue
        if item_id is None or _taken(connection, row, item_id):
            said = _content(connection, row.owner, piece, hash)
            item_id = name_said(said, record.id, place, position, lambda name: _taken(connection, row, name))
        _put(connection, row, next, item_id, place == OUTPUT, piece, hash)
        next += 1
    items = row.items + next - row.next
    write_row(connection, row._replace(next=next, items=items, used_at=max(row.used_at, record.created_at)))


def write_row(connection: sqlite3.Connection, row: Row) -> Row:
    row = row._replace(digest=row.seal)
    connection.execute(
        "UPDATE conversations SET used_at = ?, next = ?, items = ?, metadata = ?, digest = ? WHERE key = ?",
        (row.used_at, row.next, row.items, row.metadata, row.digest, row.key),
    )
    return row


def _add(connection: sqlite3.Connection, row: Row, items: Sequence[bytes]) -> None:
    for index, data in enumerate(items):
        item_id = own_id(data)
        assert item_id is not None
        if _taken(connection, row, item_id):
            raise taken_id(item_id, index)
        hash = hash_piece(row.owner, False, data)
        piece = keep_piece(connection, row.owner, hash, Piece(INPUT, index, data))
        _put(connection, row, row.next + index, item_id, False, piece, hash)
    write_row(connection, row._replace(next=row.next + len(items), items=row.items + len(items)))


def _put(
    connection: sqlite3.Connection, row: Row, position: int, item_id: str, ours: bool, piece: int, hash: bytes
) -> None:
    connection.execute(
        "INSERT INTO conversation_items (conversation, position, item_id, ours, piece, digest)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (row.key, position, item_id, int(ours), piece, digest_place(row.id, position, item_id, int(ours), hash)),
    )


def _taken(connection: sqlite3.Connection, row: Row, item_id: str) -> bool:
    return find_position(connection, row, item_id) is not None


def _content(connection: sqlite3.Connection, owner: str, piece: int, hash: bytes) -> bytes:
    (data,) = connection.execute("SELECT data FROM pieces WHERE key = ?", (piece,)).fetchone()
    return read_piece(owner, False, hash, data) or b"{}"


def _refuse_locked(connection: sqlite3.Connection, row: Row, now: Callable[[], float]) -> None:
    held = connection.execute(
        "SELECT 1 FROM leases WHERE owner = ? AND name = ? AND until > ?",
        (row.owner, conversation_lease(row.id), now()),
    )
    if held.fetchone() is not None:
        raise conversation_locked(row.id)
