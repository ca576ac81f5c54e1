"""Keys and deeds in the file: a change, its deed and the mark that tells of it are one transaction.

A row of `keys` has a seal over what it says. One that does not fit it keeps all of them from being told: without the
row nobody knows whom it was to keep out.
"""

from __future__ import annotations

import sqlite3
from functools import partial

import msgspec

from isthmus.ports.keys import MOST_DEEDS, Deed, StoredKey
from isthmus.store.kept_keys import read_row, write_key
from isthmus.store.packing import seal_key, text
from isthmus.store.refusals import name_taken
from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer


class SqliteKeys:
    """`ports.keys.KeyBook`, for the store to have."""

    readers: Readers
    writer: Writer
    _medium: Medium

    async def add_key(self, key: StoredKey, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        await self.writer.run(partial(_add, key=key, deed=deed, most=most))

    async def change_key(self, key: StoredKey, deed: Deed, *, was: StoredKey, most: int = MOST_DEEDS) -> bool:
        return await self.writer.run(partial(_change, key=key, deed=deed, was=was, most=most))

    async def keys(self) -> list[StoredKey]:
        return await self.readers.run(load_keys)

    async def keys_mark(self) -> int:
        number = await self.readers.run(_mark)
        # Another file counts from its own beginning: what was seen in the last one must not be met again.
        return self._medium.opened << 48 | number

    async def note_deed(self, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        await self.writer.run(partial(_note_change, deed=deed, most=most))

    async def deeds(self, *, most: int = 100, before: int | None = None) -> list[Deed]:
        return await self.readers.run(partial(_deeds, most=most, before=before))


def load_keys(connection: sqlite3.Connection) -> list[StoredKey]:
    rows = connection.execute("SELECT id, content, seal FROM keys ORDER BY key")
    return [read_row(*row) for row in rows]


def _add(connection: sqlite3.Connection, key: StoredKey, deed: Deed, most: int) -> None:
    _check_name(connection, key, deed.at)
    content = write_key(key)
    connection.execute(
        "INSERT INTO keys (id, content, seal) VALUES (?, ?, ?)", (key.id, content, seal_key(key.id, content))
    )
    _note_change(connection, deed, most)


def _change(connection: sqlite3.Connection, key: StoredKey, deed: Deed, was: StoredKey, most: int) -> bool:
    row = connection.execute("SELECT id, content, seal FROM keys WHERE id = ?", (text(key.id),)).fetchone()
    if row is None or was.revoked_at or read_row(*row) != was:
        return False
    _check_name(connection, key, deed.at)
    rewrite(connection, key)
    _note_change(connection, deed, most)
    return True


def rewrite(connection: sqlite3.Connection, key: StoredKey) -> None:
    content = write_key(key)
    connection.execute(
        "UPDATE keys SET content = ?, seal = ? WHERE id = ?", (content, seal_key(key.id, content), key.id)
    )


def _check_name(connection: sqlite3.Connection, key: StoredKey, at: float) -> None:
    if key.in_force(at):
        others = (each for each in load_keys(connection) if each.id != key.id and each.in_force(at))
        if any(each.name == key.name for each in others):
            raise name_taken(key.name)


def _note_change(connection: sqlite3.Connection, deed: Deed, most: int) -> None:
    move_mark(connection)
    note(connection, deed, most)


def move_mark(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE keys_mark SET number = number + 1")


def note(connection: sqlite3.Connection, deed: Deed, most: int) -> None:
    details = msgspec.json.encode(deed.details).decode()
    cursor = connection.execute(
        "INSERT INTO deeds (at, actor, action, target, details) VALUES (?, ?, ?, ?, ?)",
        (deed.at, text(deed.actor), deed.action, text(deed.target), details),
    )
    assert cursor.lastrowid is not None
    connection.execute("DELETE FROM deeds WHERE number <= ?", (cursor.lastrowid - max(1, most),))


def _mark(connection: sqlite3.Connection) -> int:
    number: int = connection.execute("SELECT number FROM keys_mark").fetchone()[0]
    return number


def _deeds(connection: sqlite3.Connection, most: int, before: int | None) -> list[Deed]:
    rows = connection.execute(
        "SELECT at, actor, action, target, details, number FROM deeds WHERE ?1 IS NULL OR number < ?1"
        " ORDER BY number DESC LIMIT ?2",
        (before, most),
    )
    return [
        Deed(at, actor, action, target, msgspec.json.decode(details, type=dict[str, str]), number)
        for at, actor, action, target, details, number in rows
    ]
