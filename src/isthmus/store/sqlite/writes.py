"""Everything that changes the file, as operations for the writer: plain functions inside its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import EventBatch, StoredResponse
from isthmus.store.pieces import FIELD, Piece, split
from isthmus.store.sqlite.packing import hash_piece, pack, pack_list


def save_response(connection: sqlite3.Connection, record: StoredResponse) -> int | None:
    """The row's key; `None` if the response was deleted and stays so."""
    skeleton, pieces = split(record)
    found = connection.execute(
        "SELECT key, owner, previous_id, deleted FROM responses WHERE id = ?", (record.id,)
    ).fetchone()
    held: list[int] = []
    if found is None:
        key = _insert(connection, record, skeleton)
    else:
        key, owner, previous_id, deleted = found
        if (owner, previous_id) != (record.owner, record.previous_response_id):
            raise ValueError(f"response {record.id} already exists with another owner or parent")
        if deleted:
            return None
        _overwrite(connection, key, record, skeleton)
        held = _detach(connection, key)
    parts = [(key, piece.place, piece.position, _keep(connection, record.owner, piece)) for piece in pieces]
    connection.executemany("INSERT INTO parts (response, place, position, piece) VALUES (?, ?, ?, ?)", parts)
    _drop_unused(connection, held)
    return key


def delete_response(connection: sqlite3.Connection, id: str, owner: str) -> bool:
    """The content goes, the row stays as a memory that this id was deleted."""
    if (key := find_key(connection, id, owner)) is None:
        return False
    _drop_content(connection, key)
    connection.execute(
        "UPDATE responses SET deleted = 1, skeleton = x'', memo = x'', model = '', provider = '',"
        " conversation = NULL WHERE key = ?",
        (key,),
    )
    return True


def remove_branch(connection: sqlite3.Connection, keys: Iterable[int]) -> int:
    """Remove rows, newest first, as long as nothing builds on them: a turn may have been added meanwhile."""
    removed = 0
    for key in keys:
        needed = connection.execute(
            "SELECT 1 FROM responses WHERE previous_id = (SELECT id FROM responses WHERE key = ?1) AND key <> ?1",
            (key,),
        ).fetchone()
        if needed:
            break
        _drop_content(connection, key)
        removed += connection.execute("DELETE FROM responses WHERE key = ?", (key,)).rowcount
    return removed


def keep_lesson(connection: sqlite3.Connection, lesson: Lesson, since: float, most: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO lessons (provider, model, parameter, value, learned_at) VALUES (?, ?, ?, ?, ?)",
        (lesson.provider, lesson.model, lesson.parameter, lesson.value, lesson.learned_at),
    )
    connection.execute("DELETE FROM lessons WHERE learned_at < ?", (since,))
    connection.execute(
        "DELETE FROM lessons WHERE (provider, model, parameter, value) IN (SELECT provider, model, parameter, value"
        " FROM lessons ORDER BY learned_at DESC LIMIT -1 OFFSET ?)",
        (most,),
    )


def append_events(connection: sqlite3.Connection, key: int, batch: EventBatch, max_bytes: int) -> None:
    stream = connection.execute("SELECT next, dropped, bytes FROM streams WHERE response = ?", (key,)).fetchone()
    if stream is not None and stream[0] != batch.first:
        raise ValueError(f"event {batch.first} does not follow: expected {stream[0]}")
    if not batch.events:
        return
    _, dropped, total = stream or (0, -1, 0)
    size = sum(map(len, batch.events))
    following = batch.first + len(batch.events)
    connection.execute(
        "INSERT INTO events (response, first, last, bytes, data) VALUES (?, ?, ?, ?, ?)",
        (key, batch.first, following - 1, size, pack_list(batch.events)),
    )
    total += size
    if total > max_bytes:
        dropped, freed = _drop_oldest_events(connection, key, batch.first, total - max_bytes, dropped)
        total -= freed
    connection.execute("INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)", (key, following, dropped, total))


def find_key(connection: sqlite3.Connection, id: str, owner: str) -> int | None:
    found = connection.execute(
        "SELECT key FROM responses WHERE id = ? AND owner = ? AND deleted = 0", (id, owner)
    ).fetchone()
    return found[0] if found else None


def _insert(connection: sqlite3.Connection, record: StoredResponse, skeleton: bytes) -> int:
    cursor = connection.execute(
        "INSERT INTO responses"
        " (status, model, provider, conversation, created_at, skeleton, memo, id, owner, previous_id)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*_columns(record, skeleton), record.id, record.owner, record.previous_response_id),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _overwrite(connection: sqlite3.Connection, key: int, record: StoredResponse, skeleton: bytes) -> None:
    connection.execute(
        "UPDATE responses SET status = ?, model = ?, provider = ?, conversation = ?, created_at = ?, skeleton = ?,"
        " memo = ? WHERE key = ?",
        (*_columns(record, skeleton), key),
    )


def _columns(record: StoredResponse, skeleton: bytes) -> tuple[object, ...]:
    content = (pack(skeleton), record.memo)
    return record.status, record.model, record.provider, record.conversation, record.created_at, *content


def _keep(connection: sqlite3.Connection, owner: str, piece: Piece) -> int:
    """The key of this content, written now if it is new."""
    digest = hash_piece(owner, piece.place == FIELD, piece.data)
    found = connection.execute("SELECT key FROM pieces WHERE hash = ?", (digest,)).fetchone()
    if found is not None:
        key: int = found[0]
        return key
    cursor = connection.execute(
        "INSERT INTO pieces (hash, owner, item_id, data) VALUES (?, ?, ?, ?)",
        (digest, owner, piece.item_id, pack(piece.data)),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _drop_content(connection: sqlite3.Connection, key: int) -> None:
    _drop_unused(connection, _detach(connection, key))
    connection.execute("DELETE FROM events WHERE response = ?", (key,))
    connection.execute("DELETE FROM streams WHERE response = ?", (key,))


def _detach(connection: sqlite3.Connection, key: int) -> list[int]:
    """Let go of the row's pieces; they still exist until `_drop_unused`."""
    held = [piece for (piece,) in connection.execute("SELECT DISTINCT piece FROM parts WHERE response = ?", (key,))]
    connection.execute("DELETE FROM parts WHERE response = ?", (key,))
    return held


def _drop_unused(connection: sqlite3.Connection, pieces: Iterable[int]) -> None:
    connection.executemany(
        "DELETE FROM pieces WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM parts WHERE piece = ?1)",
        [(piece,) for piece in pieces],
    )


def _drop_oldest_events(
    connection: sqlite3.Connection, key: int, newest: int, excess: int, dropped: int
) -> tuple[int, int]:
    """Drop whole batches, never the newest, until `excess` bytes are gone; the last number dropped, bytes freed."""
    freed = 0
    older = connection.execute(
        "SELECT first, last, bytes FROM events WHERE response = ? AND first < ? ORDER BY first", (key, newest)
    )
    doomed: list[tuple[int, int]] = []
    for first, last, size in older:
        if freed >= excess:
            break
        doomed.append((key, first))
        dropped, freed = last, freed + size
    connection.executemany("DELETE FROM events WHERE response = ? AND first = ?", doomed)
    return dropped, freed
