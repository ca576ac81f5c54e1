"""Every stored response, conversation and key compared with what was written, and what is not so set aside.

In: a connection. Out: what is damaged, and whether it was set aside: moved into the table `quarantine` with everything
that could still be read of it, never just deleted. Works beside running gateways, one row at a time. What a page of the
server's files has lost, the server says itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
import psycopg

from isthmus.errors import StoreDamaged
from isthmus.ports import conversation_lease, run_lease
from isthmus.ports.keys import MOST_DEEDS, Deed, StoredKey
from isthmus.store.conversation_row import COLUMNS, Row
from isthmus.store.damage import Damage, Examined
from isthmus.store.kept_keys import read_row
from isthmus.store.postgres import conversation_rows as said
from isthmus.store.postgres import conversation_writes, keys, reads, writes
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.faults import words
from isthmus.store.postgres.locks import lock
from isthmus.store.postgres.pieces import drop_unused
from isthmus.store.rows import damage_of_events

_STEP: Final = 200
_ITEMS: Final = (
    "SELECT i.*, c.hash, c.data FROM conversation_items AS i LEFT JOIN pieces AS c ON c.key = i.piece"
    " WHERE i.conversation = %s"
)


def examine(connection: Connection, *, repair: bool = False) -> Examined:
    responses, damage = 0, []
    for key, id in _each(connection, "responses", "NOT deleted"):
        responses += 1
        damage += _examine_response(connection, key, id, repair)
    conversations = 0
    for key, id in _each(connection, "conversations", "true"):
        conversations += 1
        damage += _examine_conversation(connection, key, id, repair)
    for key, id in list(_each(connection, "keys", "true")):
        damage += _examine_key(connection, key, id, repair)
    return Examined(responses, conversations, tuple(damage))


def _each(connection: Connection, table: str, where: str) -> Iterator[tuple[int, str]]:
    last = 0
    page = f"SELECT key, id FROM {table} WHERE key > %s AND {where} ORDER BY key LIMIT {_STEP}"
    while rows := connection.execute(page, (last,)).fetchall():
        yield from rows
        last = rows[-1][0]


def _examine_response(connection: Connection, key: int, id: str, repair: bool) -> list[Damage]:
    found = _damage_of_response(connection, key, id)
    if not found or not repair:
        return found
    with connection.transaction():
        lock(connection, run_lease(id))
        found = _damage_of_response(connection, key, id)  # again: it may have been written anew meanwhile
        for each in found:
            content = {"events": _rows(connection, "SELECT * FROM events WHERE response = %s", key)}
            if each.kind == "response":
                content["response"] = _rows(connection, "SELECT * FROM responses WHERE key = %s", key)
                content["pieces"] = _rows(
                    connection,
                    "SELECT p.place, p.position, c.* FROM parts AS p LEFT JOIN pieces AS c ON c.key = p.piece"
                    " WHERE p.response = %s ORDER BY p.place, p.position",
                    key,
                )
            _set_aside(connection, each, content)
            if each.kind == "response":
                writes.remove_row(connection, key)
            else:
                for table in ("events", "streams"):
                    connection.execute(f"DELETE FROM {table} WHERE response = %s", (key,))
    return [replace(each, set_aside=True) for each in found]


def _damage_of_response(connection: Connection, key: int, id: str) -> list[Damage]:
    try:
        with connection.transaction():
            what = reads.find_damage(connection, key)
            if what is not None:
                return [Damage("response", id, what)]
            batches = connection.execute("SELECT first, last, data, digest FROM events WHERE response = %s", (key,))
            told = next((what for batch in batches if (what := damage_of_events(*batch))), None)
            return [] if told is None else [Damage("events", id, told)]
    except psycopg.InternalError as error:  # the server cannot read it itself
        return [Damage("response", id, words(error))]


def _examine_conversation(connection: Connection, key: int, id: str, repair: bool) -> list[Damage]:
    with connection.transaction():
        if repair:
            lock(connection, conversation_lease(id))
        row = connection.execute(f"SELECT {COLUMNS} FROM conversations WHERE key = %s", (key,)).fetchone()
        if row is None:  # ended meanwhile
            return []
        what = Row(*row).damage() or said.damage_of(connection, Row(*row))
        if what is None:
            return []
        damage = Damage("conversation", id, what)
        if not repair:
            return [damage]
        _mend(connection, Row(*row), damage)
    return [replace(damage, set_aside=True)]


def _mend(connection: Connection, row: Row, damage: Damage) -> None:
    """Of one with damaged items these are set aside, and the rest goes on; one whose own row is damaged goes whole."""
    kept = {"conversation": _rows(connection, "SELECT * FROM conversations WHERE key = %s", row.key)}
    if row.damage() is not None:
        items = _rows(connection, f"{_ITEMS} ORDER BY i.position", row.key)
        _set_aside(connection, damage, {**kept, "items": items})
        conversation_writes.remove(connection, row.key)
        return
    items = said.select(connection, row, "asc", said.BEYOND)
    broken = [item.position for item in items if item.read(row) is None]
    lost = [_rows(connection, f"{_ITEMS} AND i.position = %s", row.key, position) for position in broken]
    _set_aside(connection, damage, {**kept, "items": lost})
    gone = connection.execute(
        "DELETE FROM conversation_items WHERE conversation = %s AND position = ANY(%s::bigint[]) RETURNING piece",
        (row.key, broken),
    ).fetchall()
    drop_unused(connection, [piece for (piece,) in gone])
    conversation_writes.write_row(connection, row._replace(next=row.next + 1, items=len(items) - len(broken)))


def _examine_key(connection: Connection, number: int, id: str, repair: bool) -> list[Damage]:
    """One that is not as it was is set aside, and a revoked one stands in its place: nobody knows any more what it
    opened, and a gateway whose only key is damaged must not become one that needs none."""
    row = connection.execute("SELECT id, content, seal FROM keys WHERE key = %s", (number,)).fetchone()
    assert row is not None  # none is ever forgotten
    try:
        read_row(*row)
    except StoreDamaged as error:
        damage = Damage("key", id, error.message.partition(";")[0])
    else:
        return []
    if not repair:
        return [damage]
    with connection.transaction():
        keys.lock_keys(connection)
        _set_aside(connection, damage, {"key": _rows(connection, "SELECT * FROM keys WHERE key = %s", number)})
        now = time.time()
        keys.rewrite(connection, StoredKey(id, f"damaged {id}", b"", "", now, revoked_at=now))
        keys.note_change(connection, Deed(now, "cli", "key.revoke", id, {"reason": "damaged"}), MOST_DEEDS)
    return [replace(damage, set_aside=True)]


def _set_aside(connection: Connection, damage: Damage, content: Mapping[str, Any]) -> None:
    connection.execute(
        "INSERT INTO quarantine (kind, id, reason, content) VALUES (%s, %s, %s, %s)",
        (damage.kind, damage.id, damage.reason, msgspec.json.encode(content)),
    )


def _rows(connection: Connection, query: str, *key: int) -> Any:
    """As far as they can be read; bytes travel as digits."""
    try:
        with connection.transaction():
            found = connection.execute(f"SELECT row_to_json(each)::text FROM ({query}) AS each", key)
            return [msgspec.json.decode(row) for (row,) in found]
    except psycopg.InternalError as error:
        return f"cannot be read: {words(error)}"
