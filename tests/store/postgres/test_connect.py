"""A connection has its bounds before anybody uses it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Connection, Options, connect


def shown(connection: Connection, name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(("durability", "commit"), [("process", "local"), ("power", "on")])
def test_durability_is_what_a_commit_waits_for(options: Options, durability: str, commit: str) -> None:
    with closing(connect(replace(options, durability=durability))) as connection:  # type: ignore[arg-type]
        assert shown(connection, "synchronous_commit") == commit


def test_no_statement_no_lock_and_no_open_transaction_takes_longer_than_allowed(options: Options) -> None:
    with closing(connect(replace(options, statement_timeout=0.25))) as connection:
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert shown(connection, name) == "250ms"
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(20)")


def test_tables_are_those_of_the_schema_whatever_it_is_called(options: Options) -> None:
    with closing(connect(replace(options, schema='a "b", public'))) as connection:
        assert shown(connection, "search_path") == '"a ""b"", public"'


def test_a_server_that_takes_no_connection_is_not_waited_for_long(options: Options) -> None:
    with pytest.raises(psycopg.OperationalError):
        connect(replace(options, address=replace(options.address, url="postgresql://127.0.0.1:9/x")))


def test_bytes_travel_as_bytes(connection: Connection) -> None:
    cursor = connection.execute("SELECT '\\x00ff'::bytea")
    assert cursor.pgresult is not None
    assert cursor.pgresult.fformat(0) == 1
    assert cursor.fetchone() == (b"\x00\xff",)


def test_the_url_says_how_safe_the_way_must_be(options: Options) -> None:
    """The server of the tests has no TLS: asked for, it is not done without."""
    safe = replace(options, address=Address(f"{options.address.url}?sslmode=require"))
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        connect(safe)
