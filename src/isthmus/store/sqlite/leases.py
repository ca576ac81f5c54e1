"""Leases as operations for the writer: inside its transaction nobody else writes, so a look and a change are one step.

`words` is a JSON list of what the holder was told and has not heard yet. No `RETURNING`: SQLite before 3.35 is in use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import msgspec

from isthmus.ports import UNFINISHED, Held, Signal, run_lease

_words_of = msgspec.json.Decoder(list[str])


def claim(
    connection: sqlite3.Connection, owner: str, name: str, holder: str, seconds: float, now: Callable[[], float]
) -> bool:
    at = now()
    # A lease that has ended begins anew, without its words, whoever had it.
    changed = connection.execute(
        "INSERT INTO leases (owner, name, holder, until, words) VALUES (:owner, :name, :holder, :until, '[]')"
        " ON CONFLICT (owner, name) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
        " words = CASE WHEN leases.until > :now THEN leases.words ELSE '[]' END"
        " WHERE leases.holder = excluded.holder OR leases.until <= :now",
        {"owner": owner, "name": name, "holder": holder, "until": at + seconds, "now": at},
    )
    return changed.rowcount == 1


def renew(connection: sqlite3.Connection, holder: str, seconds: float, now: Callable[[], float]) -> Held:
    at = now()
    held = connection.execute(
        "SELECT owner, name, words FROM leases WHERE holder = ? AND until > ? ORDER BY owner, name", (holder, at)
    ).fetchall()
    connection.execute(
        "UPDATE leases SET until = ?, words = '[]' WHERE holder = ? AND until > ?", (at + seconds, holder, at)
    )
    return Held(
        frozenset((owner, name) for owner, name, _ in held),
        tuple(Signal(owner, name, word) for owner, name, words in held for word in _words_of.decode(words)),
    )


def release(connection: sqlite3.Connection, owner: str, name: str, holder: str) -> None:
    connection.execute("DELETE FROM leases WHERE owner = ? AND name = ? AND holder = ?", (owner, name, holder))


def tell(connection: sqlite3.Connection, owner: str, name: str, word: str, now: Callable[[], float]) -> bool:
    lease = (owner, name, now())
    found = connection.execute("SELECT words FROM leases WHERE owner = ? AND name = ? AND until > ?", lease).fetchone()
    if found is None:
        return False
    words = _words_of.decode(found[0])
    if word not in words:
        told = msgspec.json.encode([*words, word]).decode()
        connection.execute("UPDATE leases SET words = ? WHERE owner = ? AND name = ?", (told, owner, name))
    return True


def may_write(connection: sqlite3.Connection, owner: str, id: str, holder: str, now: Callable[[], float]) -> bool:
    """Whether a response is still for this holder to write: nobody else is at it, and nobody has finished it."""
    stored = connection.execute(
        "SELECT status FROM responses WHERE id = ? AND owner = ? AND deleted = 0", (id, owner)
    ).fetchone()
    if stored is not None and stored[0] not in UNFINISHED:
        return False
    taken = connection.execute(
        "SELECT 1 FROM leases WHERE owner = ? AND name = ? AND holder <> ? AND until > ?",
        (owner, run_lease(id), holder, now()),
    ).fetchone()
    return taken is None


def sweep(connection: sqlite3.Connection, now: Callable[[], float]) -> None:
    connection.execute("DELETE FROM leases WHERE until <= ?", (now(),))
