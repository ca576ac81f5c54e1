"""Locks by name, and the database's clock.

All that is done to one response is done under the lock of its lease's name (`run:<id>`), and all that is done to one
conversation under that of its own (`conversation:<id>`): a lease is claimed under the same one. So a look and a change
are one step for every process. Who needs both takes the response's first; nobody takes two of a kind.

Pieces are shared by many responses and have row locks: who uses one holds it (`KEY SHARE`), who would remove one waits
for those (`UPDATE`), and only then looks whether it is used.
"""

from __future__ import annotations

from typing import Final

from isthmus.store.postgres.connect import Connection

NOW: Final = "coalesce(%(now)s::float8, extract(epoch FROM clock_timestamp())::float8)"
"""The time: the database's own, which is the only one that all replicas have in common, unless a test gives another."""
PRUNING: Final = "prune"
"""Held for each step of forgetting: one process at a time."""


def lock(connection: Connection, *names: str) -> None:
    """Until the end of the transaction. A statement of its own: what comes behind it sees what the last one wrote."""
    for name in names:
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (name,))
