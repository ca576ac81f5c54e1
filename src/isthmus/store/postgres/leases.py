"""Leases as rows; a claim, and whatever depends on who holds one, is under the lock of its name."""

from __future__ import annotations

from isthmus.ports import Held, Signal, run_lease
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import NOW, lock

Renewed = tuple[str, str, list[str]]
"""Owner and name of a lease, and the words for its holder."""


def claim(connection: Connection, owner: str, name: str, holder: str, seconds: float, now: float | None) -> bool:
    lock(connection, name)
    # A lease that has ended begins anew, without its words, whoever had it.
    changed = connection.execute(
        f"INSERT INTO leases (owner, name, holder, until, words)"
        f" VALUES (%(owner)s, %(name)s, %(holder)s, {NOW} + %(seconds)s::float8, ARRAY[]::text[])"
        " ON CONFLICT (owner, name) DO UPDATE SET holder = excluded.holder, until = excluded.until,"
        f" words = CASE WHEN leases.until > {NOW} THEN leases.words ELSE ARRAY[]::text[] END"
        f" WHERE leases.holder = excluded.holder OR leases.until <= {NOW} RETURNING 1",
        {"owner": owner, "name": name, "holder": holder, "seconds": seconds, "now": now},
    )
    return changed.fetchone() is not None


def renew(connection: Connection, holder: str, seconds: float, now: float | None) -> list[Renewed]:
    facts = {"holder": holder, "seconds": seconds, "now": now}
    held = connection.execute(
        f"SELECT owner, name, words FROM leases WHERE holder = %(holder)s AND until > {NOW} ORDER BY owner, name"
        " FOR UPDATE",
        facts,
    ).fetchall()
    if held:
        connection.execute(
            f"UPDATE leases SET until = {NOW} + %(seconds)s::float8, words = ARRAY[]::text[]"
            " FROM unnest(%(owners)s::text[], %(names)s::text[]) AS mine (owner, name)"
            " WHERE leases.owner = mine.owner AND leases.name = mine.name",
            {**facts, "owners": [owner for owner, *_ in held], "names": [name for _, name, _ in held]},
        )
    return [(owner, name, words) for owner, name, words in held]


def as_held(renewed: list[Renewed]) -> Held:
    return Held(
        frozenset((owner, name) for owner, name, _ in renewed),
        tuple(Signal(owner, name, word) for owner, name, words in renewed for word in words),
    )


def release(connection: Connection, owner: str, name: str, holder: str) -> bool:
    """Whether it was this holder's."""
    gone = connection.execute(
        "DELETE FROM leases WHERE owner = %s AND name = %s AND holder = %s RETURNING 1", (owner, name, holder)
    )
    return gone.fetchone() is not None


def tell(connection: Connection, owner: str, name: str, word: str, now: float | None) -> bool:
    told = connection.execute(
        "UPDATE leases SET words = CASE WHEN %(word)s = ANY(words) THEN words ELSE array_append(words, %(word)s) END"
        f" WHERE owner = %(owner)s AND name = %(name)s AND until > {NOW} RETURNING 1",
        {"owner": owner, "name": name, "word": word, "now": now},
    )
    return told.fetchone() is not None


def may_write(connection: Connection, owner: str, id: str, holder: str, now: float | None) -> bool:
    """Whether a response is still for this holder to write: nobody else is at it, and nobody has finished it. The lock
    of the response is held."""
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM responses WHERE id = %(id)s AND owner = %(owner)s AND NOT deleted"
        " AND status NOT IN ('queued', 'in_progress'))"
        " OR EXISTS (SELECT 1 FROM leases WHERE owner = %(owner)s AND name = %(name)s AND holder <> %(holder)s"
        f" AND until > {NOW})",
        {"id": id, "owner": owner, "name": run_lease(id), "holder": holder, "now": now},
    ).fetchone()
    assert found is not None
    return not found[0]


def sweep(connection: Connection, now: float | None) -> None:
    connection.execute(
        "DELETE FROM leases WHERE (owner, name) IN"
        f" (SELECT owner, name FROM leases WHERE until <= {NOW} FOR UPDATE SKIP LOCKED)",
        {"now": now},
    )
