"""Everything that asks the file, as queries for the readers: a chain of any length is two statements.

Nothing is handed out that is not what was written: each piece, turn, row and batch of events is compared with its
digest. What is not is `StoreDamaged`, which names the response; where many are asked for, its id comes back instead.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

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
from isthmus.store.listing import Place, cut_page, find_place, make_page, name_item
from isthmus.store.pieces import FIELD, INPUT, OUTPUT, join, own_id
from isthmus.store.refusals import damaged, not_found, too_long
from isthmus.store.sqlite.conversation_rows import find_named
from isthmus.store.sqlite.packing import digest_row, digest_turn, read_piece, unpack

_COLUMNS: Final = (
    "key, id, owner, previous_id, created_at, status, model, provider, conversation, skeleton, memo,"
    " turn_digest, row_digest, conversation_at"
)

_ROW_DAMAGED: Final = "its row is not as it was written"
_PLACES: Final = {INPUT: "input item", OUTPUT: "output item", FIELD: "field"}
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
    missing = id if not rows else rows[-1][2]
    for row in rows:
        if row[6]:
            raise not_found(row[1], id)
    if len(rows) > max_depth:
        raise too_long(id, max_depth)
    if missing is not None:
        raise not_found(missing, id)
    items = _contents(connection, [row[0] for row in rows], OUTPUT)
    for row in rows:
        if (what := _damage_of_turn(row, owner, items[row[0]])) is not None:
            raise damaged(row[1], what, asked=id)
    return [
        StoredTurn(turn_id, status, model, provider, items[key].data(INPUT), items[key].data(OUTPUT), inside, at)
        for key, turn_id, _, status, model, provider, _, _, inside, at in reversed(rows)
    ]


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
            found[id] = _item(owner, id, id if id in named else None, *stored)
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
    rows = [row for row in _ancestors(connection, id, owner, DEFAULT_MAX_DEPTH) if not row[6]]
    if not rows or rows[0][1] != id:
        return None
    ids = {key: turn_id for key, turn_id, *_ in reversed(rows)}
    places = connection.execute(
        "SELECT p.response, p.place, p.position, p.piece, c.item_id, c.hash"
        " FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response IN (SELECT value FROM json_each(?)) AND p.place <= ?",
        (_json(list(ids)), OUTPUT),
    ).fetchall()
    listed = {key: _Contents() for key in ids}
    for key, place, position, _, _, hash in places:
        if key in listed:
            listed[key].pieces.append((place, position, hash, b""))
    for row in rows:
        if (what := _damage_of_turn(row, owner, listed[row[0]])) is not None:
            raise damaged(row[1], what, asked=id)
    turn_order = {key: index for index, key in enumerate(ids)}
    places.sort(key=lambda place: (turn_order.get(place[0], 0), place[1], place[2]))
    entries = [
        (name_item(Place(ids[key], place, position), item_id), piece)
        for key, place, position, piece, item_id, _ in places
        if key in ids and (place == INPUT or (place == OUTPUT and ids[key] != id))
    ]
    page, has_more = cut_page(entries, limit, after, order)
    rest = connection.execute(
        "SELECT key, item_id, hash, data FROM pieces WHERE key IN (SELECT value FROM json_each(?))",
        (_json([piece for _, piece in page]),),
    )
    found = {key: (item_id, hash, data) for key, item_id, hash, data in rest}
    return make_page([(name, _item(owner, name, *found[piece])) for name, piece in page], has_more)


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


_AncestorRow = tuple[int, str, str | None, str, str, str, int, bytes | None, str | None, int]
Selected = tuple[list[StoredResponse], dict[str, str]]
"""Responses, and ids of damaged ones with what is wrong with them."""


@dataclass(slots=True)
class _Contents:
    """The pieces of a row, in order."""

    pieces: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)
    """Place, position, hash and content."""
    damage: str | None = None

    def data(self, place: int) -> tuple[bytes, ...]:
        return tuple(data for at, _, _, data in self.pieces if at == place)


def _ancestors(connection: sqlite3.Connection, id: str, owner: str, max_depth: int) -> list[_AncestorRow]:
    return connection.execute(_ANCESTRY, {"id": id, "owner": owner, "max_depth": max_depth}).fetchall()


def _select(connection: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Selected:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM responses WHERE {where}", values).fetchall()
    contents = _contents(connection, [row[0] for row in rows], FIELD)
    found: list[StoredResponse] = []
    broken: dict[str, str] = {}
    for row in rows:
        whole = _whole(row, contents[row[0]])
        if isinstance(whole, str):
            broken[row[1]] = whole
        else:
            found.append(whole)
    return found, broken


def _page(
    connection: sqlite3.Connection, key: int, where: str, values: tuple[object, ...], count: int
) -> tuple[int, Selected]:
    where, values = f"key > ? AND {where} ORDER BY key LIMIT ?", (key, *values, count)
    last = connection.execute(f"SELECT max(key) FROM (SELECT key FROM responses WHERE {where})", values)
    return last.fetchone()[0] or key, _select(connection, where, values)


def _whole(row: tuple[Any, ...], contents: _Contents) -> StoredResponse | str:
    """The response, or what is wrong with it."""
    key, id, owner, previous_id, created_at, status, model, provider, conversation, skeleton, memo, *rest = row
    turn, digest, at = rest
    told = (key, id, previous_id, status, model, provider, 0, turn, conversation, at)
    what = _damage_of_turn(told, owner, contents)
    if what is not None:
        return what
    hashes = [(position, hash) for place, position, hash, _ in contents.pieces if place == FIELD]
    try:
        if digest is not None and digest_row(turn, created_at, conversation, (skeleton, memo), hashes) != digest:
            return _ROW_DAMAGED
        fields = [(position, data) for place, position, _, data in contents.pieces if place == FIELD]
        response = join(unpack(skeleton), contents.data(OUTPUT), fields)
        if digest is None:
            msgspec.json.decode(response)  # from before there were digests: at least it must be what it should be
    except (zlib.error, ValueError, IndexError, TypeError):  # SQLite stores any kind of value in any column
        return _ROW_DAMAGED
    return StoredResponse(
        id=id,
        response=response,
        input=contents.data(INPUT),
        previous_response_id=previous_id,
        created_at=created_at,
        status=status,
        model=model,
        provider=provider,
        owner=owner,
        conversation=conversation,
        conversation_at=at,
        memo=memo,
    )


def _contents(connection: sqlite3.Connection, keys: Sequence[int], up_to: int) -> dict[int, _Contents]:
    """The pieces of each row up to that place, in order."""
    found: dict[int, _Contents] = {key: _Contents() for key in keys}
    rows: Iterator[tuple[int, int, int, str, bytes, bytes]] = connection.execute(
        "SELECT p.response, p.place, p.position, c.owner, c.hash, c.data"
        " FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response IN (SELECT value FROM json_each(?)) AND p.place <= ?",
        (_json(keys), up_to),
    )
    for key, place, position, owner, hash, data in rows:
        if key not in found:
            continue  # a damaged index leads astray; what is missing then does not match its digest
        content = read_piece(owner, place == FIELD, hash, data)
        if content is None:
            found[key].damage = f"its {_PLACES.get(place, 'part')} {position} is not as it was written"
        found[key].pieces.append((place, position, hash, content or b""))
    for contents in found.values():
        if contents.damage is None:
            contents.pieces.sort(key=lambda piece: piece[:2])
    return found


def _damage_of_turn(row: _AncestorRow, owner: str, contents: _Contents) -> str | None:
    _, id, previous_id, status, model, provider, _, digest, conversation, at = row
    if contents.damage is not None or digest is None:
        return contents.damage
    items = ((place, position, hash) for place, position, hash, _ in contents.pieces if place != FIELD)
    try:
        within = () if conversation is None else (conversation, at)
        whole = digest_turn((id, owner, previous_id, status, model, provider, *within), items) == digest
    except TypeError:  # values that cannot even be put in order
        whole = False
    return None if whole else "it is not the turn that was written"


def _item(owner: str, name: str, item_id: str | None, hash: bytes, data: bytes) -> bytes:
    content = read_piece(owner, False, hash, data)
    if content is None or own_id(content) != item_id:
        raise damaged(name, "the item is not as it was written")
    return content


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
