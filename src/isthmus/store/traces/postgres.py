"""Traces in PostgreSQL, beside the responses of the same gateway, and shared by all its replicas.

They have connections of their own, one that writes and one that reads: saving a response never waits for either. The
tables come with the store's own steps. A connection that broke is made anew, and what it was at is tried once more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import psycopg

from isthmus.errors import StoreUnavailable
from isthmus.store.postgres.connect import Connection, Options, connect
from isthmus.store.postgres.faults import is_lost, words
from isthmus.store.postgres.migrations import migrate
from isthmus.store.traces.kept import TracesInTables
from isthmus.store.traces.postgres_tables import PostgresTables

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_T = TypeVar("_T")


class PostgresTraces(TracesInTables):
    def __init__(self, options: Options) -> None:
        """Nothing is connected before it is needed."""
        super().__init__()
        self._options = options
        self._writer = _Line(options)
        self._reader = _Line(options)

    def write(self, change: Callable[[Tables], _T]) -> _T:
        return self._writer.use(change)

    def ask(self, question: Callable[[Tables], _T]) -> _T:
        def at_one_moment(tables: PostgresTables) -> _T:
            with tables.connection.transaction():
                tables.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                return question(tables)

        return self._reader.use(at_one_moment)

    def close(self) -> None:
        self.end_readers()
        self._reader.close()
        self._writer.close()


class _Line:
    """One connection, made when it is needed and again when it broke."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._prepared = False
        self._connection: Connection | None = None
        self._one = threading.RLock()

    def use(self, step: Callable[[PostgresTables], _T]) -> _T:
        with self._one:
            for left in (1, 0):
                fresh = self._connection is None
                try:
                    return step(PostgresTables(self._open()))
                except psycopg.Error as error:
                    if left and not fresh and is_lost(error):
                        self.close()
                        continue
                    self.close()
                    raise _explained(error, self._options.address.name) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        with self._one:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.close()

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self._options)
        if not self._prepared:
            migrate(self._connection, self._options)
            self._prepared = True
        return self._connection


def _explained(error: psycopg.Error, name: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the traces in `{name}` cannot be used ({words(error)}): they are tried again by themselves"
    )
