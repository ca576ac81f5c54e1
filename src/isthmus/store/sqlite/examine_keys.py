"""Every key compared with what was written.

One that is not as it was is set aside, and a revoked one stands in its place: nobody knows any more what it opened, and
a gateway whose only key is damaged must not become one that needs none.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace

from isthmus.errors import StoreDamaged
from isthmus.ports.keys import MOST_DEEDS, Deed, StoredKey
from isthmus.store.damage import Damage
from isthmus.store.kept_keys import read_row
from isthmus.store.sqlite.connect import FAULTS
from isthmus.store.sqlite.damage import read_rows, set_aside, transaction
from isthmus.store.sqlite.keys import move_mark, note, rewrite


def examine_keys(connection: sqlite3.Connection, *, repair: bool) -> list[Damage]:
    """What is wrong with them."""
    try:
        numbers = [number for (number,) in connection.execute("SELECT key FROM keys NOT INDEXED ORDER BY key")]
    except FAULTS as error:
        return [Damage("file", "", f"the list of keys cannot be read: {error}")]
    return [damage for number in numbers for damage in _examine(connection, number, repair)]


def _examine(connection: sqlite3.Connection, number: int, repair: bool) -> list[Damage]:
    found = _find(connection, number)
    if found is None or not repair:
        return [] if found is None else [found]
    try:
        with transaction(connection):
            found = _find(connection, number)  # again: it may have been written anew meanwhile
            if found is not None:
                _revoke(connection, number, found)
    except FAULTS:
        return [] if found is None else [found]  # it lies on a page that cannot be changed
    return [] if found is None else [replace(found, set_aside=True)]


def _find(connection: sqlite3.Connection, number: int) -> Damage | None:
    row = connection.execute("SELECT id, content, seal FROM keys WHERE key = ?", (number,)).fetchone()
    try:
        read_row(*row)
    except StoreDamaged as error:
        return Damage("key", str(row[0]), error.message.partition(";")[0])
    return None


def _revoke(connection: sqlite3.Connection, number: int, damage: Damage) -> None:
    set_aside(connection, damage, {"key": read_rows(connection, "SELECT * FROM keys WHERE key = ?", number)})
    now = time.time()
    connection.execute("UPDATE keys SET id = ? WHERE key = ?", (damage.id, number))
    rewrite(connection, StoredKey(damage.id, f"damaged {damage.id}", b"", "", now, revoked_at=now))
    move_mark(connection)
    note(connection, Deed(now, "cli", "key.revoke", damage.id, {"reason": "damaged"}), MOST_DEEDS)
