"""Everything that asks for responses: plain functions inside a transaction that sees one moment.

Nothing is handed out that is not what was written, as in the SQLite store (`store.rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

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
from isthmus.store.packing import unpack_list
from isthmus.store.pieces import FIELD, OUTPUT
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.conversation_rows import find_named
from isthmus.store.postgres.locks import NOW
from isthmus.store.postgres.texts import text
from isthmus.store.refusals import damaged, events_expired
from isthmus.store.rows import (
    COLUMNS,
    Ancestor,
    Contents,
    ListedPiece,
    Selected,
    check_chain,
    damage_of_events,
    list_history,
    make_turns,
    read_item,
    whole,
)

UNFINISHED: Final = "(NOT deleted AND status IN ('queued', 'in_progress'))"
_ANCESTRY: Final = """
    WITH RECURSIVE ancestry (
        depth, key, id, previous_id, status, model, provider, deleted, digest, conversation, conversation_at
    ) AS (
        SELECT 1, key, id, previous_id, status, model, provider, deleted, turn_digest, conversation, conversation_at
        FROM responses WHERE id = %(id)s AND owner = %(owner)s
        UNION ALL
        SELECT a.depth + 1, r.key, r.id, r.previous_id, r.status, r.model, r.provider, r.deleted, r.turn_digest,
            r.conversation, r.conversation_at
        FROM ancestry AS a JOIN responses AS r ON r.id = a.previous_id AND r.owner = %(owner)s
        WHERE NOT a.deleted AND a.depth <= %(max_depth)s::bigint
    )
    SELECT key, id, previous_id, status, model, provider, deleted, digest, conversation, conversation_at
    FROM ancestry ORDER BY depth
"""
"""The response, then its parent, and so on: one row more than `max_depth` tells that the chain is too long."""


def load_response(connection: Connection, id: str, owner: str) -> StoredResponse | None:
    found, broken = select(connection, "id = %(id)s AND owner = %(owner)s AND NOT deleted", {"id": id, "owner": owner})
    for broken_id, what in broken.items():
        raise damaged(broken_id, what)
    return found[0] if found else None


def find_damage(connection: Connection, key: int) -> str | None:
    """What is wrong with a row or a piece of it."""
    _, broken = select(connection, "key = %(key)s", {"key": key})
    return next(iter(broken.values()), None)


def load_expired(connection: Connection, key: int, count: int, now: float | None) -> tuple[int, Selected]:
    """The next `count` that are unfinished and held by nobody; likewise."""
    held = (
        "SELECT 1 FROM leases AS l WHERE l.owner = responses.owner AND l.name = %(run)s || responses.id"
        f" AND l.until > {NOW}"
    )
    facts = {"run": run_lease(""), "now": now}
    return _page(connection, key, f"{UNFINISHED} AND NOT EXISTS ({held})", facts, count)


def load_after(connection: Connection, key: int, count: int) -> tuple[int, Selected]:
    """The next `count` responses for an export, and the key to go on from: the same one at the end."""
    return _page(connection, key, "NOT deleted", {}, count)


def load_rows(connection: Connection, keys: Sequence[int]) -> Selected:
    """These rows, in this order."""
    where = "key = ANY(%(keys)s::bigint[]) AND NOT deleted ORDER BY array_position(%(keys)s::bigint[], key)"
    return select(connection, where, {"keys": list(keys)})


def load_chain(connection: Connection, id: str, owner: str, max_depth: int) -> list[StoredTurn]:
    rows = _ancestors(connection, id, owner, max_depth)
    check_chain(rows, id, max_depth)
    return make_turns(rows, _contents(connection, [row.key for row in rows], OUTPUT), owner, id)


def find_items(connection: Connection, ids: Sequence[str], owner: str, max_bytes: int = ANY_SIZE) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT item_id, key FROM pieces WHERE left(item_id, 100) = ANY(%s::text[]) AND item_id = ANY(%s::text[])"
        " AND owner = %s ORDER BY key DESC",
        ([id[:100] for id in ids], list(ids), owner),
    )
    named: dict[str, int] = dict(rows.fetchall())  # descending: the first stored is written last
    found: dict[str, bytes] = {}
    size = 0
    for id in ids:
        # One by one: thousands of names, a few bytes each, may stand for any number of megabytes.
        if id in named:
            stored = connection.execute("SELECT hash, data FROM pieces WHERE key = %s", (named[id],)).fetchone()
        else:
            stored = _find_unnamed(connection, id, owner)
        if stored is not None:
            found[id] = read_item(owner, id, id if id in named else None, *stored, stored=text)
        elif (said := find_named(connection, id, owner)) is not None:
            found[id] = said
        else:
            continue
        size += len(found[id])
        if size > max_bytes:
            break
    return found


def list_input_items(
    connection: Connection,
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
        " WHERE p.response = ANY(%s::bigint[]) AND p.place <= %s",
        ([row.key for row in rows], OUTPUT),
    )
    entries = list_history(rows, [ListedPiece(*place) for place in places], owner, id)
    page, has_more = cut_page(entries, limit, after, order)
    rest = connection.execute(
        "SELECT key, item_id, hash, data FROM pieces WHERE key = ANY(%s::bigint[])", ([piece for _, piece in page],)
    )
    found = {key: (item_id, hash, data) for key, item_id, hash, data in rest}
    return make_page([(name, read_item(owner, name, *found[piece], stored=text)) for name, piece in page], has_more)


def load_events(connection: Connection, id: str, owner: str, after: int) -> list[bytes]:
    stream = connection.execute(
        "SELECT key, dropped FROM responses JOIN streams ON response = key"
        " WHERE id = %s AND owner = %s AND NOT deleted",
        (id, owner),
    ).fetchone()
    if stream is None:
        return []
    key, dropped = stream
    if after < dropped:
        raise events_expired(id, after)
    batches = connection.execute(
        "SELECT first, last, data, digest FROM events WHERE response = %s AND last > %s ORDER BY first", (key, after)
    )
    events: list[bytes] = []
    for first, last, data, digest in batches:
        if (what := damage_of_events(first, last, data, digest)) is not None:
            raise damaged(id, what)
        events += [event for number, event in enumerate(unpack_list(data), first) if number > after]
    return events


def measure(connection: Connection) -> StoreStats:
    counted = connection.execute(
        "SELECT count(*) FILTER (WHERE NOT deleted), count(*) FILTER (WHERE deleted),"
        f" count(*) FILTER (WHERE {UNFINISHED}),"
        " min(created_at) FILTER (WHERE NOT deleted), max(created_at) FILTER (WHERE NOT deleted) FROM responses"
    )
    pieces = connection.execute("SELECT count(*) FROM pieces")
    held = connection.execute("SELECT count(*), coalesce(sum(items), 0)::bigint FROM conversations")
    used = measure_bytes(connection)
    live, deleted, unfinished, oldest, newest = _one(counted)
    (count,), (conversations, said) = _one(pieces), _one(held)
    return StoreStats(live, deleted, unfinished, count, used, oldest, newest, conversations, said)


_SIZES: Final = {
    "responses": "octet_length(skeleton) + octet_length(memo) + 250",
    "pieces": "octet_length(data) + 150",
    "parts": "60",
    "events": "octet_length(data) + 100",
    "conversations": "octet_length(metadata) + 200",
    "conversation_items": "150",
}
"""What a row takes, with its entries in indexes. Not what the files have: these stay as large as they once were."""


def measure_bytes(connection: Connection) -> int:
    """Bytes of what is kept; what was removed and waits for reuse is not counted."""
    sums = " + ".join(f"(SELECT coalesce(sum({size}), 0) FROM {table})" for table, size in _SIZES.items())
    used: int = _one(connection.execute(f"SELECT ({sums})::bigint"))[0]
    return used


def weigh(connection: Connection, key: int) -> int:
    """Bytes that go with a response: its row, its events, and the pieces that nothing else uses."""
    found = connection.execute(
        f"SELECT ({_SIZES['responses']})"
        f" + (SELECT coalesce(sum({_SIZES['events']}), 0) FROM events WHERE response = r.key)"
        f" + (SELECT coalesce(sum({_SIZES['parts']}), 0) FROM parts WHERE response = r.key)"
        f" + (SELECT coalesce(sum({_SIZES['pieces']}), 0) FROM pieces AS c"
        " WHERE c.key IN (SELECT piece FROM parts WHERE response = r.key)"
        " AND NOT EXISTS (SELECT 1 FROM parts WHERE piece = c.key AND response <> r.key)"
        " AND NOT EXISTS (SELECT 1 FROM conversation_items WHERE piece = c.key))"
        " FROM responses AS r WHERE r.key = %s",
        (key,),
    )
    return int(_one(found)[0])


def find_ends(
    connection: Connection, after: tuple[float, int], older_than: float | None, count: int
) -> list[tuple[float, int]]:
    """The next finished turns that nothing builds on, the longest unused first: (created_at, key), above `after`."""
    return connection.execute(
        "SELECT created_at, key FROM responses AS r WHERE (created_at, key) > (%s::float8, %s::bigint)"
        " AND (%s::float8 IS NULL OR created_at < %s::float8)"
        " AND NOT (NOT deleted AND status IN ('queued', 'in_progress'))"
        " AND NOT EXISTS (SELECT 1 FROM responses AS c WHERE c.previous_id = r.id AND c.key <> r.key)"
        " ORDER BY created_at, key LIMIT %s",
        (*after, older_than, older_than, count),
    ).fetchall()


def find_streams(connection: Connection, after: int, older_than: float, count: int) -> list[int]:
    """Finished responses made before then whose events are kept, by their keys, those behind `after`."""
    found = connection.execute(
        "SELECT response FROM streams JOIN responses ON key = response WHERE response > %s AND bytes > 0"
        " AND created_at < %s AND status NOT IN ('queued', 'in_progress') ORDER BY response LIMIT %s",
        (after, older_than, count),
    )
    return [key for (key,) in found]


def select(connection: Connection, where: str, facts: dict[str, Any]) -> Selected:
    rows = connection.execute(f"SELECT {COLUMNS} FROM responses WHERE {where}", facts).fetchall()
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


def _page(connection: Connection, key: int, where: str, facts: dict[str, Any], count: int) -> tuple[int, Selected]:
    where = f"key > %(after)s AND {where} ORDER BY key LIMIT %(count)s"
    facts = {**facts, "after": key, "count": count}
    last = connection.execute(f"SELECT max(key) FROM (SELECT key FROM responses WHERE {where}) AS page", facts)
    selected = select(connection, where, facts)
    return _one(last)[0] or key, selected


def _ancestors(connection: Connection, id: str, owner: str, max_depth: int) -> list[Ancestor]:
    rows = connection.execute(_ANCESTRY, {"id": id, "owner": owner, "max_depth": max_depth})
    return [Ancestor(*row) for row in rows]


def _contents(connection: Connection, keys: Sequence[int], up_to: int) -> dict[int, Contents]:
    """The pieces of each row up to that place, in order."""
    found = {key: Contents() for key in keys}
    if not found:
        return found
    rows = connection.execute(
        "SELECT p.response, p.place, p.position, c.owner, c.hash, c.data"
        " FROM parts AS p JOIN pieces AS c ON c.key = p.piece"
        " WHERE p.response = ANY(%s::bigint[]) AND p.place <= %s",
        (list(keys), up_to),
    )
    for key, place, position, owner, hash, data in rows:
        found[key].take(owner, place, position, hash, data)
    for contents in found.values():
        contents.close()
    return found


def _find_unnamed(connection: Connection, id: str, owner: str) -> tuple[bytes, bytes] | None:
    place = find_place(id)
    if place is None or place.position > _LARGEST:
        return None
    found = connection.execute(
        "SELECT c.hash, c.data FROM responses AS r JOIN parts AS p ON p.response = r.key"
        " JOIN pieces AS c ON c.key = p.piece"
        " WHERE r.id = %s AND r.owner = %s AND p.place = %s AND p.position = %s AND c.item_id IS NULL",
        (place.response_id, owner, place.place, place.position),
    ).fetchone()
    return (found[0], found[1]) if found else None


_LARGEST: Final = 2**31 - 1


def _one(cursor: Any) -> tuple[Any, ...]:
    row: tuple[Any, ...] = cursor.fetchone()
    return row
