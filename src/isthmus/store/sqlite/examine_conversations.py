"""Every conversation compared with what was written.

Of one with damaged items these are set aside, and the rest goes on; one whose own row is damaged is set aside whole.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Final

from isthmus.store.conversation_row import COLUMNS, Row
from isthmus.store.damage import Damage
from isthmus.store.sqlite.connect import FAULTS
from isthmus.store.sqlite.conversation_rows import damage_of, select
from isthmus.store.sqlite.conversation_writes import remove, write_row
from isthmus.store.sqlite.damage import read_rows, set_aside, transaction
from isthmus.store.sqlite.writes import drop_unused

_ALL: Final = 2**62
_ITEMS: Final = (
    "SELECT i.*, c.hash, c.data FROM conversation_items AS i LEFT JOIN pieces AS c ON c.key = i.piece"
    " WHERE i.conversation = ?"
)


def examine_conversations(connection: sqlite3.Connection, *, repair: bool) -> tuple[int, list[Damage]]:
    """How many there are, and what is wrong with them."""
    damage: list[Damage] = []
    count = 0
    try:
        # NOT INDEXED: the table itself says what there is, not an index, which may be damaged too.
        keys = [key for (key,) in connection.execute("SELECT key FROM conversations NOT INDEXED ORDER BY key")]
        for count, key in enumerate(keys, 1):  # noqa: B007  # it is what was examined when it breaks off
            damage += _examine(connection, key, repair)
    except FAULTS as error:
        damage.append(Damage("file", "", f"the list of conversations breaks off after {count}: {error}"))
    return count, damage


def _examine(connection: sqlite3.Connection, key: int, repair: bool) -> list[Damage]:
    with transaction(connection, "DEFERRED"):
        found = _find(connection, key)
    if found is None or not repair:
        return [] if found is None else [found]
    try:
        with transaction(connection):
            again = _find(connection, key)  # it may have been written anew meanwhile
            if again is not None:
                _mend(connection, key, again)
    except FAULTS:
        return [found]  # it lies on a page that cannot be changed
    return [] if again is None else [replace(again, set_aside=True)]


def _find(connection: sqlite3.Connection, key: int) -> Damage | None:
    row = _row(connection, key)
    if row is None:  # ended meanwhile
        return None
    what = row.damage() or damage_of(connection, row)
    return None if what is None else Damage("conversation", row.id, what)


def _mend(connection: sqlite3.Connection, key: int, damage: Damage) -> None:
    row = _row(connection, key)
    assert row is not None
    kept = {"conversation": read_rows(connection, "SELECT * FROM conversations WHERE key = ?", key)}
    if row.damage() is not None:
        set_aside(connection, damage, {**kept, "items": read_rows(connection, f"{_ITEMS} ORDER BY i.position", key)})
        remove(connection, key)
        return
    items = select(connection, row, "asc", _ALL)
    broken = [item.position for item in items if item.read(row) is None]
    lost = [read_rows(connection, f"{_ITEMS} AND i.position = ?", key, position) for position in broken]
    set_aside(connection, damage, {**kept, "items": lost})
    for position in broken:
        place = (key, position)
        pieces = connection.execute(
            "SELECT piece FROM conversation_items WHERE conversation = ? AND position = ?", place
        ).fetchall()
        connection.execute("DELETE FROM conversation_items WHERE conversation = ? AND position = ?", place)
        drop_unused(connection, [piece for (piece,) in pieces])
    write_row(connection, row._replace(next=row.next + 1, items=len(items) - len(broken)))


def _row(connection: sqlite3.Connection, key: int) -> Row | None:
    found = connection.execute(f"SELECT {COLUMNS} FROM conversations WHERE key = ?", (key,)).fetchone()
    return None if found is None else Row(*found)
