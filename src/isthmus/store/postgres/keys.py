"""Keys and deeds in the database: a change, its deed and the mark that tells of it are one transaction, one at a time.

A row of `keys` has a seal over what it says. One that does not fit it keeps all of them from being told: without the
row nobody knows whom it was to keep out.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from isthmus.ports.keys import MOST_DEEDS, Deed, StoredKey
from isthmus.store.kept_keys import read_row, write_key
from isthmus.store.packing import seal_key
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import lock
from isthmus.store.postgres.pool import Pool
from isthmus.store.postgres.texts import name, text
from isthmus.store.refusals import name_taken

_LOCK: Final = "keys"


class PostgresKeys:
    """`ports.keys.KeyBook`, for the store to have."""

    pool: Pool

    async def add_key(self, key: StoredKey, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        await self.pool.write(partial(_add, key=key, deed=deed, most=most))

    async def change_key(self, key: StoredKey, deed: Deed, *, was: StoredKey, most: int = MOST_DEEDS) -> bool:
        return await self.pool.write(partial(_change, key=key, deed=deed, was=was, most=most))

    async def keys(self) -> list[StoredKey]:
        return await self.pool.read(load_keys)

    async def keys_mark(self) -> int:
        return await self.pool.read(_mark)

    async def note_deed(self, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        await self.pool.write(partial(_note_alone, deed=deed, most=most))

    async def deeds(self, *, most: int = 100, before: int | None = None) -> list[Deed]:
        return await self.pool.read(partial(_deeds, most=most, before=before))


def load_keys(connection: Connection) -> list[StoredKey]:
    rows = connection.execute("SELECT id, content, seal FROM keys ORDER BY key")
    return [read_row(*row) for row in rows]


def _add(connection: Connection, key: StoredKey, deed: Deed, most: int) -> None:
    lock_keys(connection)
    _check_name(connection, key, deed.at)
    content = write_key(key)
    connection.execute(
        "INSERT INTO keys (id, content, seal) VALUES (%s, %s, %s)", (key.id, content, seal_key(key.id, content))
    )
    note_change(connection, deed, most)


def _change(connection: Connection, key: StoredKey, deed: Deed, was: StoredKey, most: int) -> bool:
    lock_keys(connection)
    row = connection.execute("SELECT id, content, seal FROM keys WHERE id = %s", (name(key.id),)).fetchone()
    if row is None or was.revoked_at or read_row(*row) != was:
        return False
    _check_name(connection, key, deed.at)
    rewrite(connection, key)
    note_change(connection, deed, most)
    return True


def rewrite(connection: Connection, key: StoredKey) -> None:
    content = write_key(key)
    connection.execute(
        "UPDATE keys SET content = %s, seal = %s WHERE id = %s", (content, seal_key(key.id, content), key.id)
    )


def _check_name(connection: Connection, key: StoredKey, at: float) -> None:
    if key.in_force(at):
        others = (each for each in load_keys(connection) if each.id != key.id and each.in_force(at))
        if any(each.name == key.name for each in others):
            raise name_taken(key.name)


def lock_keys(connection: Connection) -> None:
    """Whoever changes any of them is alone."""
    lock(connection, _LOCK)


def note_change(connection: Connection, deed: Deed, most: int) -> None:
    connection.execute("UPDATE keys_mark SET number = number + 1")
    note(connection, deed, most)


def _note_alone(connection: Connection, deed: Deed, most: int) -> None:
    lock_keys(connection)  # so that the order of their numbers is that in which they were done
    note_change(connection, deed, most)


def note(connection: Connection, deed: Deed, most: int) -> None:
    details = msgspec.json.encode(deed.details)
    connection.execute(
        "INSERT INTO deeds (at, actor, action, target, details) VALUES (%s, %s, %s, %s, %s)",
        (deed.at, text(deed.actor), deed.action, text(deed.target), details),
    )
    connection.execute(
        "DELETE FROM deeds WHERE number <= (SELECT max(number) FROM deeds) - %s::bigint", (max(1, most),)
    )


def _mark(connection: Connection) -> int:
    found = connection.execute("SELECT number FROM keys_mark").fetchone()
    assert found is not None
    number: int = found[0]
    return number


def _deeds(connection: Connection, most: int, before: int | None) -> list[Deed]:
    rows = connection.execute(
        "SELECT at, actor, action, target, details, number FROM deeds"
        " WHERE %(before)s::bigint IS NULL OR number < %(before)s::bigint ORDER BY number DESC LIMIT %(most)s",
        {"before": before, "most": most},
    )
    return [
        Deed(at, actor, action, target, msgspec.json.decode(details, type=dict[str, str]), number)
        for at, actor, action, target, details, number in rows
    ]
