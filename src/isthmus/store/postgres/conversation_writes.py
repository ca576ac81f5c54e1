"""Everything that changes a conversation: plain functions inside a transaction that holds its lock."""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.ports import APPENDING, StoredConversation, StoredResponse, conversation_lease, conversation_locked
from isthmus.store.conversation_row import Row
from isthmus.store.packing import digest_place, hash_piece
from isthmus.store.pieces import FIELD, INPUT, OUTPUT, Piece
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.conversation_rows import find, find_position
from isthmus.store.postgres.locks import NOW
from isthmus.store.postgres.pieces import HELD, drop_unused, find_known, keep_pieces
from isthmus.store.postgres.texts import text
from isthmus.store.refusals import conversation_moved, taken_id, too_many_items
from isthmus.store.rows import Hashed
from isthmus.store.said import MOMENTARY, kind_of, name_said

_Placed = tuple[int, str, bool, bytes]
"""Position, id, whether a response said it, and the hash of the piece."""


def start(connection: Connection, record: StoredConversation, items: Sequence[bytes]) -> None:
    at = float(record.created_at)
    row = Row(0, record.id, record.owner, at, at, 0, 0, record.metadata)
    made = connection.execute(
        "INSERT INTO conversations (id, owner, created_at, used_at, next, items, metadata, digest)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING key",
        (*row[1:8], row.seal),
    ).fetchone()
    assert made is not None
    _add(connection, row._replace(key=made[0]), items)


def describe(connection: Connection, id: str, owner: str, metadata: bytes) -> StoredConversation | None:
    if (row := find(connection, id, owner)) is None:
        return None
    return write_row(connection, row._replace(metadata=metadata)).record


def end(connection: Connection, id: str, owner: str) -> bool:
    """Also one that is damaged: whoever wants it gone is not to be kept from it."""
    found = connection.execute("SELECT key FROM conversations WHERE id = %s AND owner = %s", (id, owner)).fetchone()
    if found is None:
        return False
    remove(connection, found[0])
    return True


def remove(connection: Connection, key: int) -> None:
    held = connection.execute("DELETE FROM conversation_items WHERE conversation = %s RETURNING piece", (key,))
    pieces = [piece for (piece,) in held]
    connection.execute("DELETE FROM conversations WHERE key = %s", (key,))
    drop_unused(connection, pieces)


def add(
    connection: Connection, id: str, owner: str, items: Sequence[bytes], most: int, at: float, now: float | None
) -> bool:
    if (row := find(connection, id, owner)) is None:
        return False
    _refuse_locked(connection, row, now)
    if row.items + len(items) > most:
        raise too_many_items(id, most)
    _add(connection, row._replace(used_at=max(row.used_at, float(at))), items)
    return True


def take_out(connection: Connection, id: str, item_id: str, owner: str, now: float | None) -> bool:
    if (row := find(connection, id, owner)) is None:
        return False
    if (position := find_position(connection, row, item_id)) is None:
        return False
    _refuse_locked(connection, row, now)
    gone = connection.execute(
        "DELETE FROM conversation_items WHERE conversation = %s AND position = %s RETURNING piece", (row.key, position)
    ).fetchall()
    drop_unused(connection, [piece for (piece,) in gone])
    write_row(connection, row._replace(next=row.next + 1, items=row.items - 1))
    return True


def append_turn(connection: Connection, record: StoredResponse, hashed: Sequence[Hashed]) -> None:
    """What a response says is added to its conversation; its pieces are written already."""
    if record.conversation is None or record.status not in APPENDING:
        return
    if (row := find(connection, record.conversation, record.owner)) is None:
        return
    if row.next != record.conversation_at:
        raise conversation_moved(row.id)
    said = sorted(
        ((hash, piece) for hash, piece in hashed if piece.place != FIELD),
        key=lambda each: (each[1].place, each[1].position),
    )
    said = [each for each in said if each[1].place == OUTPUT or kind_of(each[1].data) not in MOMENTARY]
    names = _Names(connection, row, [_wanted(record.id, piece) for _, piece in said])
    placed: list[_Placed] = []
    for position, (hash, piece) in enumerate(said, row.next):
        item_id = None if piece.item_id is None else text(piece.item_id)
        if item_id is None or names.taken(item_id):
            item_id = name_said(piece.data, record.id, piece.place, piece.position, names.taken)
        names.take(item_id)
        placed.append((position, item_id, piece.place == OUTPUT, hash))
    _put(connection, row, placed)
    used = max(row.used_at, float(record.created_at))
    changed = row._replace(next=row.next + len(placed), items=row.items + len(placed), used_at=used)
    write_row(connection, changed)


def write_row(connection: Connection, row: Row) -> Row:
    row = row._replace(digest=row.seal)
    connection.execute(
        "UPDATE conversations SET used_at = %s, next = %s, items = %s, metadata = %s, digest = %s WHERE key = %s",
        (row.used_at, row.next, row.items, row.metadata, row.digest, row.key),
    )
    return row


class _Names:
    """Which ids a conversation has: asked at once for those that are likely, and one by one for others."""

    def __init__(self, connection: Connection, row: Row, wanted: Sequence[str]) -> None:
        self._connection, self._row, self._asked = connection, row, set(wanted)
        found = connection.execute(
            "SELECT item_id FROM conversation_items WHERE left(item_id, 100) = ANY(%s::text[])"
            " AND item_id = ANY(%s::text[]) AND conversation = %s",
            ([name[:100] for name in wanted], list(wanted), row.key),
        )
        self._taken = {name for (name,) in found}

    def taken(self, name: str) -> bool:
        if name in self._taken:
            return True
        return name not in self._asked and find_position(self._connection, self._row, name) is not None

    def take(self, name: str) -> None:
        self._taken.add(name)


def _wanted(response_id: str, piece: Piece) -> str:
    if piece.item_id is not None:
        return text(piece.item_id)
    return name_said(piece.data, response_id, piece.place, piece.position, lambda name: False)


def _add(connection: Connection, row: Row, items: Sequence[bytes]) -> None:
    pieces = [Piece(INPUT, index, data) for index, data in enumerate(items)]
    hashed = [(hash_piece(row.owner, False, piece.data), piece) for piece in pieces]
    known = find_known(connection, [hash for hash, _ in hashed])
    names = _Names(connection, row, [text(piece.item_id or "") for piece in pieces])
    placed: list[_Placed] = []
    for index, (hash, piece) in enumerate(hashed):
        assert piece.item_id is not None
        if names.taken(text(piece.item_id)):
            raise taken_id(piece.item_id, index)
        names.take(text(piece.item_id))
        placed.append((row.next + index, text(piece.item_id), False, hash))
    keep_pieces(connection, row.owner, hashed, known)
    _put(connection, row, placed)
    write_row(connection, row._replace(next=row.next + len(items), items=row.items + len(items)))


def _put(connection: Connection, row: Row, placed: Sequence[_Placed]) -> None:
    if not placed:
        return
    connection.execute(
        f"{HELD} INSERT INTO conversation_items (conversation, position, item_id, ours, piece, digest)"
        " SELECT %s, n.position, n.item_id, n.ours, held.key, n.digest"
        " FROM unnest(%s::bigint[], %s::text[], %s::smallint[], %s::bytea[], %s::bytea[])"
        " AS n (position, item_id, ours, hash, digest) LEFT JOIN held ON held.hash = n.hash",
        (
            [hash for *_, hash in placed],
            row.key,
            [position for position, *_ in placed],
            [item_id for _, item_id, *_ in placed],
            [int(ours) for _, _, ours, _ in placed],
            [hash for *_, hash in placed],
            [digest_place(row.id, position, item_id, int(ours), hash) for position, item_id, ours, hash in placed],
        ),
    )


def _refuse_locked(connection: Connection, row: Row, now: float | None) -> None:
    held = connection.execute(
        f"SELECT 1 FROM leases WHERE owner = %(owner)s AND name = %(name)s AND until > {NOW}",
        {"owner": row.owner, "name": conversation_lease(row.id), "now": now},
    )
    if held.fetchone() is not None:
        raise conversation_locked(row.id)
