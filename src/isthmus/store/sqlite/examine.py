"""Every stored response, conversation and key compared with what was written, and what is not so set aside.

In: a connection that writes. Out: what is damaged, and whether it was set aside: moved into the table `quarantine` with
everything that could still be read of it, never just deleted. Works beside a running gateway, a few rows at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from isthmus.store.damage import Damage, Examined
from isthmus.store.rows import damage_of_events
from isthmus.store.sqlite.connect import FAULTS
from isthmus.store.sqlite.damage import read_rows, set_aside, transaction
from isthmus.store.sqlite.examine_conversations import examine_conversations
from isthmus.store.sqlite.examine_keys import examine_keys
from isthmus.store.sqlite.reads import find_damage
from isthmus.store.sqlite.writes import remove_row

_STEP: Final = 200
_MOST_TOLD: Final = 100


def examine(connection: sqlite3.Connection, *, repair: bool = False) -> Examined:
    # What is no text any more is shown as it is, instead of keeping everything else from being read.
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    broken = _structure(connection)
    if broken and repair:
        with suppress(*FAULTS):  # indexes can be made anew from what they index
            connection.execute("REINDEX")
        broken = _structure(connection)
    count, damage = 0, [Damage("file", "", reason) for reason in broken]
    try:
        for keys in _keys(connection):
            count += len(keys)
            for key in keys:
                damage += _examine_row(connection, key, repair)
    except FAULTS as error:
        damage.append(Damage("file", "", f"the list of responses breaks off after {count}: {error}"))
    conversations, more = examine_conversations(connection, repair=repair)
    return Examined(count, conversations, (*damage, *more, *examine_keys(connection, repair=repair)))


def _structure(connection: sqlite3.Connection) -> list[str]:
    try:
        told = [line for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_TOLD})")]
    except FAULTS as error:
        return [str(error)]
    return [] if told == ["ok"] else told


def _keys(connection: sqlite3.Connection) -> Iterator[list[int]]:
    last = -1
    # NOT INDEXED: the table itself says what there is, not an index, which may be damaged too.
    page = "SELECT key FROM responses NOT INDEXED WHERE key > ? AND deleted = 0 ORDER BY key LIMIT ?"
    while keys := [key for (key,) in connection.execute(page, (last, _STEP)).fetchall()]:
        yield keys
        last = keys[-1]


def _examine_row(connection: sqlite3.Connection, key: int, repair: bool) -> list[Damage]:
    found = _find(connection, key)
    if not found or not repair:
        return found
    try:
        with transaction(connection):
            found = _find(connection, key)  # again: it may have been written anew meanwhile
            for each in found:
                _set_aside(connection, key, each)
    except FAULTS:
        return found  # it lies on a page that cannot be changed
    return [replace(each, set_aside=True) for each in found]


def _find(connection: sqlite3.Connection, key: int) -> list[Damage]:
    id = f"row {key}"
    try:
        with transaction(connection, "DEFERRED"):
            row = connection.execute("SELECT id FROM responses WHERE key = ?", (key,)).fetchone()
            if row is None:  # forgotten meanwhile
                return []
            id = row[0]
            what = find_damage(connection, key)
            if what is not None:
                return [Damage("response", id, what)]
            batches = connection.execute("SELECT first, last, data, digest FROM events WHERE response = ?", (key,))
            told = next((what for batch in batches if (what := damage_of_events(*batch))), None)
            return [] if told is None else [Damage("events", id, told)]
    except FAULTS as error:
        return [Damage("response", id, str(error))]


def _set_aside(connection: sqlite3.Connection, key: int, damage: Damage) -> None:
    content: dict[str, Any] = {"events": read_rows(connection, "SELECT * FROM events WHERE response = ?", key)}
    if damage.kind == "response":
        content["response"] = read_rows(connection, "SELECT * FROM responses WHERE key = ?", key)
        content["pieces"] = read_rows(
            connection,
            "SELECT p.place, p.position, c.* FROM parts AS p LEFT JOIN pieces AS c ON c.key = p.piece"
            " WHERE p.response = ? ORDER BY p.place, p.position",
            key,
        )
    set_aside(connection, damage, content)
    if damage.kind == "response":
        remove_row(connection, key)
    else:
        connection.execute("DELETE FROM events WHERE response = ?", (key,))
        connection.execute("DELETE FROM streams WHERE response = ?", (key,))
