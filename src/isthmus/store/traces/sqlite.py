"""Traces in SQLite: the contract of `ports.traces.TraceStore`, in a file or, bounded like one, in memory.

One thread writes and may wait; readers have a thread and a connection of their own, so that neither holds up a loop.
In memory both share the one connection that there is, one after the other. The file is opened when it is first needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from isthmus.store.sqlite.connect import FAULTS
from isthmus.store.traces import writes
from isthmus.store.traces.kept import TracesInTables
from isthmus.store.traces.schema import explained, open_reader, open_writer
from isthmus.store.traces.sqlite_tables import SqliteTables

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables

_T = TypeVar("_T")
_Identity = tuple[int, int] | None


class SqliteTraces(TracesInTables):
    def __init__(self, path: Path | None = None) -> None:
        """`None`: in memory."""
        super().__init__()
        self._path = path
        self._writer: SqliteTables | None = None
        self._reader: SqliteTables | None = None
        self._one = threading.RLock()
        """Held by whoever uses the connection in memory; of a file, by its reader."""
        self._writing = self._one if path is None else threading.RLock()
        self._file: _Identity = None
        self._read_file: _Identity = None
        """Which file is open, to write and to read."""

    def close(self) -> None:
        self.end_readers()
        with self._one, self._writing:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    # ── connections ────────────────────────────────────────────────────────────────────────────────

    def write(self, change: Callable[[Tables], _T]) -> _T:
        with self._writing:
            self._notice_loss()
            if self._writer is None:
                self._writer, self._file = open_writer(self._path), _identify(self._path)
            try:
                return change(self._writer)
            except FAULTS as error:
                # Opened anew the next time: it may be there again, or another one.
                self._writer.close()
                self._writer = None
                raise explained(self._path, error) from error

    def ask(self, question: Callable[[Tables], _T]) -> _T:
        with self._one:
            try:
                connection = self._connection()
                if self._path is None:
                    return question(connection)
                connection.execute("BEGIN")  # all its statements see the same moment
                try:
                    return question(connection)
                finally:
                    connection.execute("COMMIT")
            except FAULTS as error:
                if self._reader is not None:
                    self._reader.close()
                    self._reader = None
                raise explained(self._path, error) from error

    def _connection(self) -> SqliteTables:
        if self._path is None:
            if self._writer is None:
                self._writer = open_writer(None)
            return self._writer
        there = _identify(self._path)
        if self._reader is not None and there != self._read_file:
            self._reader.close()
            self._reader = None
        if self._reader is None:
            if there is None:
                open_writer(self._path).close()
            self._reader, self._read_file = open_reader(self._path), _identify(self._path)
        return self._reader

    def _notice_loss(self) -> None:
        """SQLite goes on with a file that was deleted or replaced; nobody would find what it writes there."""
        if self._writer is not None and self._path is not None and _identify(self._path) != self._file:
            self._writer.close()
            self._writer = None
            self.memory = writes.Memory()


def _identify(path: Path | None) -> _Identity:
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)
