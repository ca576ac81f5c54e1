"""Everything that changes responses: plain functions inside a transaction.

A save asks all its questions at once, then sends all its changes with the end of the transaction: two round trips.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from isthmus.ports import EventBatch, StoredResponse
from isthmus.store.packing import digest_events, pack_list
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.pieces import HELD, drop_unused, find_known, keep_pieces
from isthmus.store.postgres.texts import name, text
from isthmus.store.rows import Hashed, take_apart

History = Callable[[], tuple[bytes, ...]]


def save_response(
    connection: Connection, record: StoredResponse, history: History | None = None
) -> tuple[int, list[Hashed]] | None:
    """The row's key and the pieces; `None` if the response was deleted and stays so. Its lock is held."""
    record = as_stored(record)
    columns, hashed = take_apart(record)
    row = connection.execute(
        "SELECT key, owner, previous_id, deleted FROM responses WHERE id = %s FOR NO KEY UPDATE", (record.id,)
    )
    used = connection.execute(
        "SELECT p.piece, c.hash FROM responses AS r JOIN parts AS p ON p.response = r.key"
        " JOIN pieces AS c ON c.key = p.piece WHERE r.id = %s",
        (record.id,),
    )
    parent = connection.execute(
        "SELECT 1 FROM responses WHERE id = %s AND owner = %s FOR KEY SHARE",
        (record.previous_response_id, record.owner),
    )
    known = find_known(connection, [hash for hash, _ in hashed])
    number = connection.execute("SELECT nextval('responses_key')")
    # Also a parent that was deleted on purpose is one: what was built on it cannot be continued any more.
    if history is not None and parent.fetchone() is None:
        record = replace(record, previous_response_id=None, input=(*history(), *record.input))
        columns, hashed = take_apart(record)
        known = find_known(connection, [hash for hash, _ in hashed])
    found = row.fetchone()
    if found is None:
        (key,) = number.fetchone() or (0,)
        connection.execute(
            "INSERT INTO responses (status, model, provider, conversation, conversation_at, created_at, skeleton,"
            " memo, turn_digest, row_digest, key, id, owner, previous_id)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (*columns, key, record.id, record.owner, record.previous_response_id),
        )
    else:
        key, owner, previous_id, deleted = found
        if (owner, previous_id) != (record.owner, record.previous_response_id):
            raise ValueError(f"response {record.id} already exists with another owner or parent")
        if deleted:
            return None
        connection.execute(
            "UPDATE responses SET status = %s, model = %s, provider = %s, conversation = %s, conversation_at = %s,"
            " created_at = %s, skeleton = %s, memo = %s, turn_digest = %s, row_digest = %s WHERE key = %s",
            (*columns, key),
        )
        connection.execute("DELETE FROM parts WHERE response = %s", (key,))
    keep_pieces(connection, record.owner, hashed, known)
    # A piece that somebody removed in between leaves no key, which is refused: the whole step begins anew then.
    connection.execute(
        f"{HELD} INSERT INTO parts (response, place, position, piece)"
        " SELECT %s, n.place, n.position, held.key FROM unnest(%s::smallint[], %s::integer[], %s::bytea[])"
        " AS n (place, position, hash) LEFT JOIN held ON held.hash = n.hash",
        (
            [hash for hash, _ in hashed],
            key,
            [piece.place for _, piece in hashed],
            [piece.position for _, piece in hashed],
            [hash for hash, _ in hashed],
        ),
    )
    if found is not None:
        still = {hash for hash, _ in hashed}
        drop_unused(connection, [piece for piece, hash in used if bytes(hash) not in still])
    return key, hashed


def delete_response(connection: Connection, id: str, owner: str) -> bool:
    """The content goes, the row stays as a memory that this id was deleted. Its lock is held."""
    if (key := find_key(connection, id, owner)) is None:
        return False
    drop_content(connection, key)
    connection.execute(
        "UPDATE responses SET deleted = true, skeleton = '', memo = '', model = '', provider = '',"
        " conversation = NULL, conversation_at = 0, turn_digest = NULL, row_digest = NULL WHERE key = %s",
        (key,),
    )
    return True


def append_events(connection: Connection, key: int, batch: EventBatch, max_bytes: int) -> None:
    stream = connection.execute("SELECT next, dropped, bytes FROM streams WHERE response = %s", (key,)).fetchone()
    if stream is not None and stream[0] != batch.first:
        raise ValueError(f"event {batch.first} does not follow: expected {stream[0]}")
    if not batch.events:
        return
    _, dropped, total = stream or (0, -1, 0)
    size = sum(map(len, batch.events))
    following = batch.first + len(batch.events)
    data = pack_list(batch.events)
    connection.execute(
        "INSERT INTO events (response, first, last, bytes, data, digest) VALUES (%s, %s, %s, %s, %s, %s)",
        (key, batch.first, following - 1, size, data, digest_events(batch.first, following - 1, data)),
    )
    total += size
    if total > max_bytes:
        dropped, freed = _drop_oldest_events(connection, key, batch.first, total - max_bytes, dropped)
        total -= freed
    connection.execute(
        "INSERT INTO streams (response, next, dropped, bytes) VALUES (%s, %s, %s, %s) ON CONFLICT (response)"
        " DO UPDATE SET next = excluded.next, dropped = excluded.dropped, bytes = excluded.bytes",
        (key, following, dropped, total),
    )


def drop_streams(connection: Connection, keys: Sequence[int]) -> None:
    """Let their events go; how far they went is still known."""
    connection.execute("DELETE FROM events WHERE response = ANY(%s::bigint[])", (list(keys),))
    connection.execute(
        "UPDATE streams SET dropped = next - 1, bytes = 0 WHERE response = ANY(%s::bigint[])", (list(keys),)
    )


def find_key(connection: Connection, id: str, owner: str) -> int | None:
    found = connection.execute(
        "SELECT key FROM responses WHERE id = %s AND owner = %s AND NOT deleted", (id, owner)
    ).fetchone()
    return found[0] if found else None


def remove_row(connection: Connection, key: int) -> None:
    drop_content(connection, key)
    connection.execute("DELETE FROM responses WHERE key = %s", (key,))


def drop_content(connection: Connection, key: int) -> None:
    held = connection.execute("DELETE FROM parts WHERE response = %s RETURNING piece", (key,)).fetchall()
    drop_unused(connection, [piece for (piece,) in held])
    for table in ("events", "streams", "chats"):
        connection.execute(f"DELETE FROM {table} WHERE response = %s", (key,))


def as_stored(record: StoredResponse) -> StoredResponse:
    """With words that PostgreSQL can hold."""
    conversation = None if record.conversation is None else name(record.conversation)
    model, provider = text(record.model), text(record.provider)
    if (record.model, record.provider, record.conversation) == (model, provider, conversation):
        return record
    return replace(record, model=model, provider=provider, conversation=conversation)


def _drop_oldest_events(connection: Connection, key: int, newest: int, excess: int, dropped: int) -> tuple[int, int]:
    """Drop whole batches, never the newest, until `excess` bytes are gone; the last number dropped, bytes freed."""
    freed = 0
    older = connection.execute(
        "SELECT first, last, bytes FROM events WHERE response = %s AND first < %s ORDER BY first", (key, newest)
    )
    doomed: list[int] = []
    for first, last, size in older:
        if freed >= excess:
            break
        doomed.append(first)
        dropped, freed = last, freed + size
    connection.execute("DELETE FROM events WHERE response = %s AND first = ANY(%s::bigint[])", (key, doomed))
    return dropped, freed
