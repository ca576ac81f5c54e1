"""Reads on their own threads and connections: they see the last commit, and wait neither for the writer nor
hold up the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final, TypeVar

from isthmus.store.sqlite.connect import FAULTS, concerns_file, trouble_of, unavailable
from isthmus.store.sqlite.medium import Lent, Medium

T = TypeVar("T")

_ONE_PAGE: Final = sqlite3.SQLITE_CORRUPT


class Readers:
    def __init__(self, medium: Medium, *, threads: int, timed: Callable[[float], None] = lambda seconds: None) -> None:
        """`timed` hears, on the loop, how long each query took with its wait."""
        self._timed = timed
        self._medium = medium
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="isthmus-store-reader")
        self._room = asyncio.Semaphore(threads * 2)
        """The bound of the pool's queue: who finds no room waits here, on the loop."""
        self._own = threading.local()
        self._lent: list[Lent] = []
        self._closed = False

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The query's result; all its statements see the same moment."""
        began = perf_counter()
        try:
            async with self._room:
                if self._closed:
                    raise RuntimeError("the store is closed")
                return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, query)
        finally:
            self._timed(perf_counter() - began)

    async def aclose(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        while self._lent:
            self._lent.pop().close()

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        lent = self._mine()
        with lent.lock:
            try:
                connection = self._medium.lend(lent)
                connection.execute("BEGIN")
                try:
                    return query(connection)
                finally:
                    if connection.in_transaction:
                        connection.execute("COMMIT")
            except FAULTS as error:
                trouble = trouble_of(error)
                if concerns_file(error) and trouble.code != _ONE_PAGE:
                    self._medium.report(trouble)  # the writer finds out whether it is so for everybody
                raise unavailable(error, self._medium.path) from error

    def _mine(self) -> Lent:
        lent: Lent | None = getattr(self._own, "lent", None)
        if lent is None:
            lent = self._own.lent = Lent()
            self._lent.append(lent)
            self._medium.register(lent)
        return lent
