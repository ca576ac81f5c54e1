"""Everything that changes the file, as operations for the writer: plain functions inside its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import EventBatch, StoredResponse, StoredWord
from isthmus.store.packing import digest_events, pack, pack_list, read_piece
from isthmus.store.pieces import FIELD, OUTPUT, Piece
from isthmus.store.rows import take_apart
from isthmus.store.sqlite.known import known_to

History = Callable[[], tuple[bytes, ...]]


def save_response(connection: sqlite3.Connection, record: StoredResponse, history: History | None = None) -> int | None:
    """The row's key; `None` if the response was deleted and stays so."""
    if history is not None and not _has_parent(connection, record):
        record = replace(record, previous_response_id=None, input=(*history(), *record.input))
    columns, hashed = take_apart(record)
    key = _insert(connection, record, columns)
    held: list[int] = []
    if key is None:
        key, owner, previous_id, deleted = connection.execute(
            "SELECT key, owner, previous_id, deleted FROM responses WHERE id = ?", (record.id,)
        ).fetchone()
        if (owner, previous_id) != (record.owner, record.previous_response_id):
            raise ValueError(f"response {record.id} already exists with another owner or parent")
        if deleted:
            return None
        _overwrite(connection, key, columns)
        held = _detach(connection, key)
    known = known_to(connection).find
    parts = [
        (key, piece.place, piece.position, known(digest) or keep_piece(connection, record.owner, digest, piece))
        for digest, piece in hashed
    ]
    connection.executemany("INSERT INTO parts (response, place, position, piece) VALUES (?, ?, ?, ?)", parts)
    if held:
        drop_unused(connection, held)
    return key


def delete_response(connection: sqlite3.Connection, id: str, owner: str) -> bool:
    """The content goes, the row stays as a memory that this id was deleted."""
    if (key := find_key(connection, id, owner)) is None:
        return False
    _drop_content(connection, key)
    connection.execute(
        "UPDATE responses SET deleted = 1, skeleton = x'', memo = x'', model = '', provider = '',"
        " conversation = NULL, conversation_at = 0, turn_digest = NULL, row_digest = NULL WHERE key = ?",
        (key,),
    )
    return True


Stamp = tuple[float, int]
"""When a turn was made, and its key: of equal times the later row is newer."""


def remove_branch(
    connection: sqlite3.Connection, key: int, newest: Stamp, most: int
) -> tuple[int, int | None, Stamp | None]:
    """Remove a turn that nothing builds on, then the one that it was built on, and so on: as far as they are finished,
    nothing else needs them, and none is newer than `newest`.

    How many were removed; where to go on, after `most` of them; and which newer one is now an end itself.
    """
    removed = 0
    while removed < most:
        row = connection.execute(
            "SELECT r.created_at, r.deleted = 0 AND r.status IN ('queued', 'in_progress'), parent.key,"
            " EXISTS (SELECT 1 FROM responses AS c WHERE c.previous_id = r.id AND c.key <> r.key)"
            " FROM responses AS r LEFT JOIN responses AS parent ON parent.id = r.previous_id WHERE r.key = ?",
            (key,),
        ).fetchone()
        if row is None:
            return removed, None, None
        created_at, unfinished, parent, needed = row
        if unfinished or needed:
            return removed, None, None
        if (created_at, key) > newest:
            return removed, None, (created_at, key)
        remove_row(connection, key)
        removed += 1
        if parent is None or parent == key:
            return removed, None, None
        key = parent
    return removed, key, None


def remove_row(connection: sqlite3.Connection, key: int) -> None:
    _drop_content(connection, key)
    connection.execute("DELETE FROM responses WHERE key = ?", (key,))


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


def keep_word(connection: sqlite3.Connection, word: StoredWord, since: float, most: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO words (provider, place, data, heard_at) VALUES (?, ?, ?, ?)",
        (word.provider, word.place, word.data, word.heard_at),
    )
    connection.execute("DELETE FROM words WHERE heard_at < ?", (since,))
    connection.execute(
        "DELETE FROM words WHERE (provider, place) IN"
        " (SELECT provider, place FROM words ORDER BY heard_at DESC LIMIT -1 OFFSET ?)",
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
    data = pack_list(batch.events)
    connection.execute(
        "INSERT INTO events (response, first, last, bytes, data, digest) VALUES (?, ?, ?, ?, ?, ?)",
        (key, batch.first, following - 1, size, data, digest_events(batch.first, following - 1, data)),
    )
    total += size
    if total > max_bytes:
        dropped, freed = _drop_oldest_events(connection, key, batch.first, total - max_bytes, dropped)
        total -= freed
    connection.execute("INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)", (key, following, dropped, total))


def drop_streams(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Let their events go; how far they went is still known."""
    connection.executemany("DELETE FROM events WHERE response = ?", [(key,) for key in keys])
    connection.executemany(
        "UPDATE streams SET dropped = next - 1, bytes = 0 WHERE response = ?", [(key,) for key in keys]
    )


def find_key(connection: sqlite3.Connection, id: str, owner: str) -> int | None:
    found = connection.execute(
        "SELECT key FROM responses WHERE id = ? AND owner = ? AND deleted = 0", (id, owner)
    ).fetchone()
    return found[0] if found else None


def _has_parent(connection: sqlite3.Connection, record: StoredResponse) -> bool:
    """Also one that was deleted on purpose: what was built on it cannot be continued any more."""
    parent = (record.previous_response_id, record.owner)
    return connection.execute("SELECT 1 FROM responses WHERE id = ? AND owner = ?", parent).fetchone() is not None


def _insert(connection: sqlite3.Connection, record: StoredResponse, columns: tuple[object, ...]) -> int | None:
    """Its key; `None` if it is there already."""
    cursor = connection.execute(
        "INSERT INTO responses"
        " (status, model, provider, conversation, conversation_at, created_at, skeleton, memo, turn_digest, row_digest,"
        " id, owner, previous_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (*columns, record.id, record.owner, record.previous_response_id),
    )
    return cursor.lastrowid if cursor.rowcount else None


def _overwrite(connection: sqlite3.Connection, key: int, columns: tuple[object, ...]) -> None:
    connection.execute(
        "UPDATE responses SET status = ?, model = ?, provider = ?, conversation = ?, conversation_at = ?,"
        " created_at = ?, skeleton = ?, memo = ?, turn_digest = ?, row_digest = ? WHERE key = ?",
        (*columns, key),
    )


def keep_piece(connection: sqlite3.Connection, owner: str, digest: bytes, piece: Piece) -> int:
    """The key of this content, written now if it is new, or if what was written is not there as it was."""
    known = known_to(connection)
    if (key := known.find(digest)) is None:
        key = _find_or_write(connection, owner, digest, piece)
        known.note(digest, key)
    return key


def _find_or_write(connection: sqlite3.Connection, owner: str, digest: bytes, piece: Piece) -> int:
    # What was just said is new, and need not be looked for.
    if piece.place == OUTPUT and (key := _write(connection, owner, digest, piece)) is not None:
        return key
    found: tuple[int, bytes] | None = connection.execute(
        "SELECT key, data FROM pieces WHERE hash = ?", (digest,)
    ).fetchone()
    if found is None:
        key = _write(connection, owner, digest, piece)
        assert key is not None
        return key
    key, data = found
    if read_piece(owner, piece.place == FIELD, digest, data) is None:
        connection.execute(
            "UPDATE pieces SET owner = ?, item_id = ?, data = ? WHERE key = ?",
            (owner, piece.item_id, pack(piece.data), key),
        )
    return key


def _write(connection: sqlite3.Connection, owner: str, digest: bytes, piece: Piece) -> int | None:
    """Its key; `None` if it is there already."""
    cursor = connection.execute(
        "INSERT INTO pieces (hash, owner, item_id, data) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING",
        (digest, owner, piece.item_id, pack(piece.data)),
    )
    return cursor.lastrowid if cursor.rowcount else None


def _drop_content(connection: sqlite3.Connection, key: int) -> None:
    drop_unused(connection, _detach(connection, key))
    connection.execute("DELETE FROM events WHERE response = ?", (key,))
    connection.execute("DELETE FROM streams WHERE response = ?", (key,))
    connection.execute("DELETE FROM chats WHERE response = ?", (key,))


def _detach(connection: sqlite3.Connection, key: int) -> list[int]:
    """Let go of the row's pieces; they still exist until `drop_unused`."""
    held = [piece for (piece,) in connection.execute("SELECT DISTINCT piece FROM parts WHERE response = ?", (key,))]
    connection.execute("DELETE FROM parts WHERE response = ?", (key,))
    return held


def drop_unused(connection: sqlite3.Connection, pieces: Sequence[int]) -> None:
    """Pieces that no response holds any more, and no conversation."""
    known_to(connection).forget(pieces)
    connection.executemany(
        "DELETE FROM pieces WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM parts WHERE piece = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM conversation_items WHERE piece = ?1)",
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
