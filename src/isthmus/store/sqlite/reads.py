"""Everything that asks the file, as queries for the readers: a chain of any length is two statements.

Nothing is handed out that is not what was written: each piece, turn, row and batch of events is compared with its
digest. What is not is `StoreDamaged`, which names the response; where many are asked for, its id comes back instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from isthmus.ports import (
    ANY_SIZE,
    DEFAULT_MAX_DEPTH,
    ItemPage,
    StoredResponse,
    StoredTurn,
    StoreStats,
    run_lease,
)
from isthmus.store.listing import cut_page, find_place, make_page
from isthmus.store.pieces import FIELD, OUTPUT
from isthmus.store.refusals import damaged
from isthmus.store.rows import (
    COLUMNS,
    Ancestor,
    Contents,
    ListedPiece,
    Selected,
    check_chain,
    list_history,
    make_turns,
    read_item,
    whole,
)
from isthmus.store.sqlite.conversation_rows import find_named

_UNFINISHED: Final = "deleted = 0 AND status IN ('queued', 'in_progress')"

_ANCESTRY: Final = """
    WITH RECURSIVE ancestry (
        depth, key, id, previous_id, status, model, provider, deleted, digest, conversation, conversation_at
    ) AS (
        SELECT 1, key, id, previous_id, status, model, provider, deleted, turn_digest, conversation, conversation_at
        FROM responses WHERE id = :id AND owner = :owner
        UNION ALL
        SELECT depth + 1, r.key, r.id, r.previous_id, r.status, r.model, r.provider, r.deleted, r.turn_digest,
            r.conversation, r.conversation_at
        FROM ancestry AS a JOIN responses AS r ON r.id = a.previous_id AND r.owner = :owner
        WHERE a.deleted = 0 AND a.depth <= :max_depth
    )
    SELECT key, id, previous_id, status, model, provider, deleted, digest, conversation, conversation_at
    FROM ancestry ORDER BY depth
"""
"""The response, then its parent, and so on: one row more than `max_depth` tells that the chain is too long."""


def load_response(connection: sqlite3.Connection, id: str, owner: str) -> StoredResponse | None:
    found, broken = _select(connection, "id = ? AND owner = ? AND deleted = 0", (id, owner))
    for broken_id, what in broken.items():
        raise damaged(broken_id, what)
    return found[0] if found else None


def find_damage(connection: sqlite3.Connection, key: int) -> str | None:
    """What is wrong with a row or a piece of it."""
    _, broken = _select(connection, "key = ?", (key,))
    return next(iter(broken.values()), None)


def load_expired(
    connection: sqlite3.Connection, key: int, count: int, now: Callable[[], float]
) -> tuple[int, Selected]:
    """The next `count` that are unfinished and held by nobody; likewise."""
    held = "SELECT 1 FROM leases AS l WHERE l.owner = responses.owner AND l.name = ? || responses.id AND l.until > ?"
    return _page(connection, key, f"{_UNFINISHED} AND NOT EXISTS ({held})", (run_lease(""), now()), count)


def load_after(connection: sqlite3.Connection, key: int, count: int) -> tuple[int, Selected]:
    """The next `count` responses for an export, and the key to go on from: the same one at the end."""
    return _page(connection, key, "deleted = 0", (), count)


def load_rows(connection: sqlite3.Connection, keys: Sequence[int]) -> Selected:
    """These rows, in this order."""
    place = "SELECT e.key FROM json_each(?) AS e WHERE e.value = responses.key"
    where = f"key IN (SELECT value FROM json_each(?)) AND deleted = 0 ORDER BY ({place})"
    return _select(connection, where, (_json(keys), _json(keys)))


def load_chain(connection: sqlite3.Connection, id: str, owner: str, max_depth: int) -> list[StoredTurn]:
    rows = _ancestors(connection, id, owner, max_depth)
    check_chain(rows, id, max_depth)
    return make_turns(rows, _contents(connection, [row.key for row in rows], OUTPUT), owner, id)


def find_items(
    connection: sqlite3.Connection, ids: Sequence[str], owner: str, max_bytes: int = ANY_SIZE
) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT item_id, key FROM pieces WHERE item_id IN (SELECT value FROM json_each(?)) AND owner = ?"
        " ORDER BY key DESC",
        (_json(ids), owner),
    )
    named = dict(rows.fetchall())  # descending: the first stored is written last
    found: dict[str, bytes] = {}
    size = 0
    for id in ids:
        # One by one: thousands of names, a few bytes each, may stand for any number of megabytes.
        if id in named:
            stored = connection.execute("SELECT hash, data FROM pieces WHERE key = ?", (named[id],)).fetchone()
        else:
            stored = _find_unnamed(connection, id, owner)
        if stored is not None:
            found[id] = read_item(owner, id, id if id in named else None, *stored)
        elif (said := find_named(connection, id, owner)) is not None:
            found[id] = said
        else:
            continue
        size += len(found[id])
        if size > max_bytes:
            break
    return found


def list_input_items(
    connection: sqlite3.Connection,
    id: str,
    owner: str,
    limit: int,
    after: str | None,
    order: Literal["asc", "desc"],
) -> ItemPage | None:
    rows = [row for row in _ancestors(connection, id, owner, DEFAULT_MAX_DEPTH) if not row.deleted]
    if not rows or rows[0].id != id:
        return None
    places = connection.execute(
        "SELECT p.response, p.place, p.position, p.piece, c.item_id, c.hash"
        " FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response IN (SELECT value FROM json_each(?)) AND p.place <= ?",
        (_json([row.key for row in rows]), OUTPUT),
    )
    entries = list_history(rows, [ListedPiece(*place) for place in places], owner, id)
    page, has_more = cut_page(entries, limit, after, order)
    rest = connection.execute(
        "SELECT key, item_id, hash, data FROM pieces WHERE key IN (SELECT value FROM json_each(?))",
        (_json([piece for _, piece in page]),),
    )
    found = {key: (item_id, hash, data) for key, item_id, hash, data in rest}
    return make_page([(name, read_item(owner, name, *found[piece])) for name, piece in page], has_more)


def measure(connection: sqlite3.Connection) -> StoreStats:
    live, deleted, unfinished, oldest, newest = connection.execute(
        f"SELECT count(*) FILTER (WHERE deleted = 0), count(*) FILTER (WHERE deleted = 1),"
        f" count(*) FILTER (WHERE {_UNFINISHED}),"
        " min(created_at) FILTER (WHERE deleted = 0), max(created_at) FILTER (WHERE deleted = 0) FROM responses"
    ).fetchone()
    (pieces,) = connection.execute("SELECT count(*) FROM pieces").fetchone()
    held = connection.execute("SELECT count(*), coalesce(sum(items), 0) FROM conversations").fetchone()
    return StoreStats(live, deleted, unfinished, pieces, measure_bytes(connection), oldest, newest, *held)


def measure_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of pages in use; pages that were freed and wait for reuse are not counted."""
    count, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    used: int = (count - free) * size
    return used


def find_ends(
    connection: sqlite3.Connection, after: tuple[float, int], older_than: float | None, count: int
) -> list[tuple[float, int]]:
    """The next finished turns that nothing builds on, the longest unused first: (created_at, key), above `after`.

    SQLite passes over the others by itself, without this thread holding up any other.
    """
    return connection.execute(
        "SELECT created_at, key FROM responses AS r WHERE (created_at, key) > (?, ?)"
        " AND (?3 IS NULL OR created_at < ?3) AND NOT (deleted = 0 AND status IN ('queued', 'in_progress'))"
        " AND NOT EXISTS (SELECT 1 FROM responses AS c WHERE c.previous_id = r.id AND c.key <> r.key)"
        " ORDER BY created_at, key LIMIT ?4",
        (*after, older_than, count),
    ).fetchall()


def _ancestors(connection: sqlite3.Connection, id: str, owner: str, max_depth: int) -> list[Ancestor]:
    rows = connection.execute(_ANCESTRY, {"id": id, "owner": owner, "max_depth": max_depth})
    return [Ancestor(*row) for row in rows]


def _select(connection: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Selected:
    rows = connection.execute(f"SELECT {COLUMNS} FROM responses WHERE {where}", values).fetchall()
    contents = _contents(connection, [row[0] for row in rows], FIELD)
    found: list[StoredResponse] = []
    broken: dict[str, str] = {}
    for row in rows:
        read = whole(row, contents[row[0]])
        if isinstance(read, str):
            broken[row[1]] = read
        else:
            found.append(read)
    return found, broken


def _page(
    connection: sqlite3.Connection, key: int, where: str, values: tuple[object, ...], count: int
) -> tuple[int, Selected]:
    where, values = f"key > ? AND {where} ORDER BY key LIMIT ?", (key, *values, count)
    last = connection.execute(f"SELECT max(key) FROM (SELECT key FROM responses WHERE {where})", values)
    return last.fetchone()[0] or key, _select(connection, where, values)


def _contents(connection: sqlite3.Connection, keys: Sequence[int], up_to: int) -> dict[int, Contents]:
    """The pieces of each row up to that place, in order."""
    found: dict[int, Contents] = {key: Contents() for key in keys}
    rows: Iterator[tuple[int, int, int, str, bytes, bytes]] = connection.execute(
        "SELECT p.response, p.place, p.position, c.owner, c.hash, c.data"
        " FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response IN (SELECT value FROM json_each(?)) AND p.place <= ?",
        (_json(keys), up_to),
    )
    for key, place, position, owner, hash, data in rows:
        if key not in found:
            continue  # a damaged index leads astray; what is missing then does not match its digest
        found[key].take(owner, place, position, hash, data)
    for contents in found.values():
        contents.close()
    return found


def _find_unnamed(connection: sqlite3.Connection, id: str, owner: str) -> tuple[bytes, bytes] | None:
    if (place := find_place(id)) is None:
        return None
    found = connection.execute(
        "SELECT c.hash, c.data FROM responses AS r JOIN parts AS p ON p.response = r.key"
        " JOIN pieces AS c ON c.key = p.piece"
        " WHERE r.id = ? AND r.owner = ? AND p.place = ? AND p.position = ? AND c.item_id IS NULL",
        (place.response_id, owner, place.place, place.position),
    ).fetchone()
    return found or None


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()
