"""A name is held by one transaction at a time."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import NOW, lock


def test_who_holds_a_name_keeps_others_from_it_and_from_no_other(
    connection: Connection, another: Callable[[], Connection]
) -> None:
    other = another()
    other.execute("SET lock_timeout = '100ms'")
    with connection.transaction():
        lock(connection, "run:one", "conversation:two")
        with other.transaction():
            lock(other, "run:other")
        for name in ("run:one", "conversation:two"):
            with pytest.raises(psycopg.errors.LockNotAvailable), other.transaction():
                lock(other, name)
    with other.transaction():
        lock(other, "run:one")


def test_what_was_written_under_it_is_seen_by_the_next(
    connection: Connection, another: Callable[[], Connection]
) -> None:
    other = another()
    connection.execute("BEGIN")
    lock(connection, "run:one")
    connection.execute("INSERT INTO secrets VALUES ('one', 'x')")
    with other.pipeline():
        other.execute("BEGIN")
        lock(other, "run:one")
        found = other.execute("SELECT 1 FROM secrets WHERE name = 'one'")
        connection.execute("COMMIT")
        assert found.fetchone() is not None
        other.execute("COMMIT")


def test_the_time_is_the_databases_unless_it_is_given(connection: Connection) -> None:
    (own,) = connection.execute(f"SELECT {NOW} - extract(epoch FROM clock_timestamp())::float8", {"now": None})
    assert abs(own[0]) < 1
    assert connection.execute(f"SELECT {NOW}", {"now": 5.0}).fetchone() == (5.0,)
