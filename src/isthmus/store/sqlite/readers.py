"""Reads on their own threads and connections: they see the last commit, and wait neither for the writer nor
hold up the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from isthmus.store.sqlite.connect import connect_reader, unavailable

T = TypeVar("T")


class Readers:
    def __init__(self, path: Path, *, threads: int, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="isthmus-store-reader")
        self._room = asyncio.Semaphore(threads * 2)
        """The bound of the pool's queue: who finds no room waits here, on the loop."""
        self._own = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The query's result; all its statements see the same moment."""
        async with self._room:
            if self._closed:
                raise RuntimeError("the store is closed")
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, query)

    async def aclose(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        while self._connections:
            self._connections.pop().close()

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise unavailable(error, self._path) from error

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = connect_reader(self._path, self._busy_seconds)
            self._connections.append(connection)
        return connection
