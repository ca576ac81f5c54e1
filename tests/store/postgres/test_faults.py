"""What the server says, in our words."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from isthmus.errors import StoreDamaged, StoreUnavailable
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.faults import AGAIN, advice, explain, is_lost, words


@pytest.mark.parametrize(
    ("kind", "lost", "says"),
    [
        (errors.AdminShutdown, True, "tried again by itself"),
        (errors.ConnectionFailure, True, "can be reached"),
        (errors.DiskFull, False, "more room"),
        (errors.TooManyConnections, False, "store.max_connections"),
        (errors.ReadOnlySqlTransaction, True, "the primary"),
        (errors.InvalidPassword, False, "user and password"),
        (errors.InvalidCatalogName, False, "create the database"),
        (errors.InsufficientPrivilege, False, "the rights on its schema"),
        (errors.QueryCanceled, False, "store.statement_timeout"),
        (errors.LockNotAvailable, False, "store.statement_timeout"),
    ],
)
def test_what_keeps_it_from_being_used_has_a_next_step(kind: type[psycopg.Error], lost: bool, says: str) -> None:
    error = kind("no")
    told = explain(error, "postgresql://db/kept")
    assert isinstance(told, StoreUnavailable)
    assert says in told.message
    assert "postgresql://db/kept" in told.message
    assert is_lost(error) == lost


def test_a_page_that_the_server_cannot_read_is_damage() -> None:
    told = explain(errors.DataCorrupted("invalid page in block 7"), "postgresql://db/kept")
    assert isinstance(told, StoreDamaged)
    assert "invalid page in block 7" in told.message


def test_what_only_a_bug_explains_is_not_explained_away() -> None:
    error = errors.UndefinedColumn("no such column")
    assert explain(error, "db") is error


def test_what_two_did_at_once_is_done_again() -> None:
    assert {errors.DeadlockDetected.sqlstate, errors.SerializationFailure.sqlstate} <= AGAIN


def test_words_are_those_of_the_server_and_not_of_a_row(connection: Connection) -> None:
    connection.execute("INSERT INTO secrets VALUES ('one', 'x')")
    with pytest.raises(psycopg.Error) as raised:
        connection.execute("INSERT INTO secrets VALUES ('one', 'hush')")
    assert words(raised.value) == 'duplicate key value violates unique constraint "secrets_pkey"'


@pytest.mark.parametrize(
    ("said", "told", "next"),
    [
        (
            'connection failed: connection to server at "::1", port 9 failed: Connection refused\n\tIs it?',
            *("Connection refused", "can be reached"),
        ),
        (
            'connection to server at "h" failed: FATAL:  the database system is starting up',
            *("the database system is starting up", "by itself"),
        ),
        (
            'connection failed: FATAL:  password authentication failed for user "x"',
            *('password authentication failed for user "x"', "user and password"),
        ),
    ],
)
def test_what_is_said_of_a_connection_is_one_line(said: str, told: str, next: str) -> None:
    error = psycopg.OperationalError(said)
    assert words(error) == told
    assert next in advice(error)
    assert is_lost(error)
