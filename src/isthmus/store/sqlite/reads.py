"""Everything that asks the file, as queries for the readers: a chain of any length is two statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import DEFAULT_MAX_DEPTH, ItemPage, StoredResponse, StoredTurn, StoreStats, run_lease
from isthmus.store.listing import Place, cut_page, find_place, make_page, name_item
from isthmus.store.pieces import FIELD, INPUT, OUTPUT, join
from isthmus.store.refusals import events_expired, not_found, too_long
from isthmus.store.retention import Row
from isthmus.store.sqlite.packing import unpack, unpack_list

_COLUMNS: Final = "key, id, owner, previous_id, created_at, status, model, provider, conversation, skeleton, memo"

_UNFINISHED: Final = "deleted = 0 AND status IN ('queued', 'in_progress')"

_ANCESTRY: Final = """
    WITH RECURSIVE ancestry (depth, key, id, previous_id, status, model, provider, deleted) AS (
        SELECT 1, key, id, previous_id, status, model, provider, deleted
        FROM responses WHERE id = :id AND owner = :owner
        UNION ALL
        SELECT depth + 1, r.key, r.id, r.previous_id, r.status, r.model, r.provider, r.deleted
        FROM ancestry AS a JOIN responses AS r ON r.id = a.previous_id AND r.owner = :owner
        WHERE a.deleted = 0 AND a.depth <= :max_depth
    )
    SELECT key, id, previous_id, status, model, provider, deleted FROM ancestry ORDER BY depth
"""
"""The response, then its parent, and so on: one row more than `max_depth` tells that the chain is too long."""


def load_response(connection: sqlite3.Connection, id: str, owner: str) -> StoredResponse | None:
    found = _select(connection, "id = ? AND owner = ? AND deleted = 0", (id, owner))
    return found[0] if found else None


def load_expired(connection: sqlite3.Connection, now: Callable[[], float]) -> list[StoredResponse]:
    held = "SELECT 1 FROM leases AS l WHERE l.owner = responses.owner AND l.name = ? || responses.id AND l.until > ?"
    return _select(connection, f"{_UNFINISHED} AND NOT EXISTS ({held}) ORDER BY key", (run_lease(""), now()))


def load_after(connection: sqlite3.Connection, key: int, count: int) -> tuple[int, list[StoredResponse]]:
    """The next `count` responses for an export, and the key to go on from."""
    where = "key > ? AND deleted = 0 ORDER BY key LIMIT ?"
    last = connection.execute(f"SELECT max(key) FROM (SELECT key FROM responses WHERE {where})", (key, count))
    return last.fetchone()[0] or key, _select(connection, where, (key, count))


def load_chain(connection: sqlite3.Connection, id: str, owner: str, max_depth: int) -> list[StoredTurn]:
    rows = _ancestors(connection, id, owner, max_depth)
    missing = id if not rows else rows[-1][2]
    for row in rows:
        if row[6]:
            raise not_found(row[1], id)
    if len(rows) > max_depth:
        raise too_long(id, max_depth)
    if missing is not None:
        raise not_found(missing, id)
    items = _contents(connection, [row[0] for row in rows], OUTPUT)
    return [
        StoredTurn(turn_id, status, model, provider, _data(items[key], INPUT), _data(items[key], OUTPUT))
        for key, turn_id, _, status, model, provider, _ in reversed(rows)
    ]


def find_items(connection: sqlite3.Connection, ids: Sequence[str], owner: str) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT item_id, data FROM pieces WHERE item_id IN (SELECT value FROM json_each(?)) AND owner = ?"
        " ORDER BY key DESC",
        (_json(ids), owner),
    )
    named = {item_id: unpack(data) for item_id, data in rows}  # descending: the first stored is written last
    found: dict[str, bytes] = {}
    for id in ids:
        data = named[id] if id in named else _find_unnamed(connection, id, owner)
        if data is not None:
            found[id] = data
    return found


def list_input_items(
    connection: sqlite3.Connection,
    id: str,
    owner: str,
    limit: int,
    after: str | None,
    order: Literal["asc", "desc"],
) -> ItemPage | None:
    rows = [row for row in _ancestors(connection, id, owner, DEFAULT_MAX_DEPTH) if not row[6]]
    if not rows or rows[0][1] != id:
        return None
    ids = {key: turn_id for key, turn_id, *_ in reversed(rows)}
    places = connection.execute(
        "SELECT p.response, p.place, p.position, p.piece, c.item_id"
        " FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response IN (SELECT value FROM json_each(?)) AND p.place <= ?",
        (_json(list(ids)), OUTPUT),
    ).fetchall()
    turn_order = {key: index for index, key in enumerate(ids)}
    places.sort(key=lambda place: (turn_order[place[0]], place[1], place[2]))
    entries = [
        (name_item(Place(ids[key], place, position), item_id), piece)
        for key, place, position, piece, item_id in places
        if place == INPUT or ids[key] != id
    ]
    page, has_more = cut_page(entries, limit, after, order)
    data = dict(
        connection.execute(
            "SELECT key, data FROM pieces WHERE key IN (SELECT value FROM json_each(?))",
            (_json([piece for _, piece in page]),),
        )
    )
    return make_page([(name, unpack(data[piece])) for name, piece in page], has_more)


def load_events(connection: sqlite3.Connection, id: str, owner: str, after: int) -> list[bytes]:
    stream = connection.execute(
        "SELECT key, dropped FROM responses JOIN streams ON response = key WHERE id = ? AND owner = ? AND deleted = 0",
        (id, owner),
    ).fetchone()
    if stream is None:
        return []
    key, dropped = stream
    if after < dropped:
        raise events_expired(id, after)
    batches = connection.execute(
        "SELECT first, data FROM events WHERE response = ? AND last > ? ORDER BY first", (key, after)
    )
    return [event for first, data in batches for number, event in enumerate(unpack_list(data), first) if number > after]


def measure(connection: sqlite3.Connection) -> StoreStats:
    live, deleted, unfinished, oldest, newest = connection.execute(
        f"SELECT count(*) FILTER (WHERE deleted = 0), count(*) FILTER (WHERE deleted = 1),"
        f" count(*) FILTER (WHERE {_UNFINISHED}),"
        " min(created_at) FILTER (WHERE deleted = 0), max(created_at) FILTER (WHERE deleted = 0) FROM responses"
    ).fetchone()
    (pieces,) = connection.execute("SELECT count(*) FROM pieces").fetchone()
    return StoreStats(live, deleted, unfinished, pieces, measure_bytes(connection), oldest, newest)


def measure_bytes(connection: sqlite3.Connection) -> int:
    """Bytes of pages in use; pages that were freed and wait for reuse are not counted."""
    count, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    used: int = (count - free) * size
    return used


def load_retention_rows(connection: sqlite3.Connection) -> list[Row[int]]:
    rows = connection.execute(
        "SELECT r.key, p.key, r.created_at, r.deleted = 0 AND r.status IN ('queued', 'in_progress')"
        " FROM responses AS r LEFT JOIN responses AS p ON p.id = r.previous_id ORDER BY r.key"
    )
    return [Row(key, parent, created_at, bool(unfinished)) for key, parent, created_at, unfinished in rows]


_AncestorRow = tuple[int, str, str | None, str, str, str, int]
_Content = tuple[int, int, bytes]


def _ancestors(connection: sqlite3.Connection, id: str, owner: str, max_depth: int) -> list[_AncestorRow]:
    return connection.execute(_ANCESTRY, {"id": id, "owner": owner, "max_depth": max_depth}).fetchall()


def _select(connection: sqlite3.Connection, where: str, values: tuple[object, ...]) -> list[StoredResponse]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM responses WHERE {where}", values).fetchall()
    contents = _contents(connection, [row[0] for row in rows], FIELD)
    return [_whole(row, contents[row[0]]) for row in rows]


def _whole(row: tuple[Any, ...], contents: list[_Content]) -> StoredResponse:
    _, id, owner, previous_id, created_at, status, model, provider, conversation, skeleton, memo = row
    fields = [(position, data) for place, position, data in contents if place == FIELD]
    response = join(unpack(skeleton), _data(contents, OUTPUT), fields)
    return StoredResponse(
        id=id,
        response=response,
        input=_data(contents, INPUT),
        previous_response_id=previous_id,
        created_at=created_at,
        status=status,
        model=model,
        provider=provider,
        owner=owner,
        conversation=conversation,
        memo=memo,
    )


def _contents(connection: sqlite3.Connection, keys: Sequence[int], up_to: int) -> dict[int, list[_Content]]:
    """The pieces of each row up to that place, in order."""
    found: dict[int, list[_Content]] = {key: [] for key in keys}
    rows: Iterator[tuple[int, int, int, bytes]] = connection.execute(
        "SELECT p.response, p.place, p.position, c.data FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response IN (SELECT value FROM json_each(?)) AND p.place <= ?",
        (_json(keys), up_to),
    )
    for key, place, position, data in rows:
        found[key].append((place, position, unpack(data)))
    for contents in found.values():
        contents.sort(key=lambda content: content[:2])
    return found


def _data(contents: Iterable[_Content], place: int) -> tuple[bytes, ...]:
    return tuple(data for at, _, data in contents if at == place)


def _find_unnamed(connection: sqlite3.Connection, id: str, owner: str) -> bytes | None:
    if (place := find_place(id)) is None:
        return None
    found = connection.execute(
        "SELECT c.data FROM responses AS r JOIN parts AS p ON p.response = r.key JOIN pieces AS c ON c.key = p.piece"
        " WHERE r.id = ? AND r.owner = ? AND p.place = ? AND p.position = ? AND c.item_id IS NULL",
        (place.response_id, owner, place.place, place.position),
    ).fetchone()
    return unpack(found[0]) if found else None


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()


def load_lessons(connection: sqlite3.Connection, provider: str, model: str, since: float) -> list[Lesson]:
    rows = connection.execute(
        "SELECT provider, model, parameter, value, learned_at FROM lessons"
        " WHERE provider = ? AND model = ? AND learned_at >= ? ORDER BY learned_at",
        (provider, model, since),
    )
    return [Lesson(*row) for row in rows]
