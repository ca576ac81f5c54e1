"""The file that everything is kept in: whether it still stands there, and how it is taken up again.

SQLite goes on with a file that was deleted or replaced: every save succeeds, and all of them are gone with the process.
So the file at the path is compared with the open one, by device and inode, before and after each commit, before each
read, and before a request that is to be stored is let in. What is wrong is noted here, once, for everybody. Only the
writer's thread changes anything about it: it tries again every moment, and takes the note away when a response of some
size can be saved again.

A file that is gone is not made anew while the gateway runs: an unmounted disk would become an empty store. Whatever
is put there is opened, as at a start.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from isthmus.errors import StoreUnavailable
from isthmus.log import tell
from isthmus.store.sqlite.connect import (
    FAULTS,
    Durability,
    Trouble,
    configure,
    connect,
    connect_reader,
    connect_writer,
)
from isthmus.store.sqlite.known import Writing
from isthmus.store.sqlite.migrations import check_file, migrate

log = logging.getLogger("isthmus.store")

_PUT_BACK: Final = "put it back, or restore a backup there; an empty file in its place begins a new store"
_DELETED: Final = Trouble("it was deleted or moved away while in use", _PUT_BACK, lost=True, there=False)
_REPLACED: Final = Trouble("another file was put in its place", "it is opened in a moment", lost=True)
_NO_WAL: Final = Trouble("its write-ahead log was deleted or replaced", "it is opened anew in a moment", lost=True)
_READONLY: Final = Trouble("it is read-only", "make the file and its folder writable for this user")

_Identity = tuple[int, int] | None


class Lent:
    """A reader's connection. Its lock is held while it is used: a file that is given up must not stay open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None

    def close(self) -> None:
        with self.lock:
            connection, self.connection = self.connection, None
            if connection is not None:
                connection.close()


class Medium:
    def __init__(self, path: Path, durability: Durability, busy_seconds: float) -> None:
        self.path = path
        self.opened = 0
        """How often: what was counted on another file says nothing about this one."""
        self.wake: Callable[[], None] = lambda: None
        """Calls the writer when something is wrong."""
        self._at = path.absolute()
        # As text: these are asked several times for each request, and a `Path` is turned into text each time.
        self._text, self._wal_at = str(self._at), f"{self._at}-wal"
        self._durability = durability
        self._busy_seconds = busy_seconds
        self._file: _Identity = None
        self._wal: _Identity = None
        self._lent: list[Lent] = []
        self._noting = threading.Lock()
        self._trouble: Trouble | None = None

    # ── how it is ──────────────────────────────────────────────────────────────────────────────────

    @property
    def troubled(self) -> bool:
        return self._trouble is not None

    def check(self) -> None:
        """Raises what is known to keep it from saving, or can be seen at once."""
        trouble = self._trouble or self.look()
        if trouble is not None:
            self.report(trouble)
            raise trouble.error(self.path)

    def look(self) -> Trouble | None:
        """What can be seen from outside: a few system calls, on whatever thread."""
        if (lost := self.lost()) is not None:
            return lost
        return None if os.access(self._text, os.W_OK) else _READONLY

    def lost(self) -> Trouble | None:
        """Whether the open file is one that nobody will find again."""
        try:
            found = os.stat(self._text)
        except (FileNotFoundError, NotADirectoryError):
            return _DELETED
        except OSError as error:
            unseen = f"it cannot be looked at: {error.strerror}"
            return Trouble(unseen, "check the disk and the folder", lost=True, there=False)
        if (found.st_dev, found.st_ino) != self._file:
            return _REPLACED
        return None if _identify(self._wal_at) == self._wal else _NO_WAL

    def report(self, trouble: Trouble) -> StoreUnavailable:
        """Note it; the first one calls the writer."""
        with self._noting:
            known, self._trouble = self._trouble, trouble
        if known is None:
            self.wake()
        if known is None or known.reason != trouble.reason:
            tell(log, "error", "store.unavailable", path=self.path, reason=trouble.reason, next=trouble.advice)
        return trouble.error(self.path)

    def recovered(self) -> None:
        with self._noting:
            known, self._trouble = self._trouble, None
        if known is not None:
            tell(log, "warning", "store.available", path=self.path, after=known.reason)

    # ── connections ────────────────────────────────────────────────────────────────────────────────

    def open(self) -> Writing:
        """The connection that writes, at the start: a file that is not there is made."""
        return self._take(connect_writer(self.path, self._busy_seconds))

    def reopen(self, old: Writing | None) -> Writing:
        """The same on what stands there now. All others are closed first, whatever becomes of the new one."""
        self.let_go(old)
        connection = self._take(connect(self._at, self._busy_seconds))
        tell(log, "error", "store.reopened", path=self.path, responses=_count(connection))
        return connection

    def let_go(self, connection: sqlite3.Connection | None) -> None:
        """Close everything. A log of a file that stands here no longer would be taken for that of its successor."""
        for lent in self._lent:
            lent.close()
        if connection is None:
            return
        lost = self.lost()
        folded = lost is not None and _fold(connection)
        with suppress(*FAULTS):
            connection.close()
        if lost is not None and self._wal is not None and _identify(self._wal_at) == self._wal:
            with suppress(OSError):
                if folded:
                    os.unlink(self._wal_at)
                else:  # what is in it is not in the file, wherever that is now
                    os.replace(self._wal_at, f"{self._wal_at}.left")
            with suppress(OSError):
                os.unlink(self._at.with_name(f"{self._at.name}-shm"))

    def lend(self, lent: Lent) -> sqlite3.Connection:
        """A reader's connection to the file that stands there; `lent.lock` is held."""
        if (lost := self.lost()) is not None:
            raise self.report(lost)
        if lent.connection is None:
            lent.connection = connect_reader(self._at, self._busy_seconds)
            if (lost := self.lost()) is not None:
                lent.connection.close()
                lent.connection = None
                raise self.report(lost)
        return lent.connection

    def register(self, lent: Lent) -> None:
        self._lent.append(lent)

    def _take(self, connection: Writing) -> Writing:
        try:
            file = _identify(self._at)
            check_file(connection, self.path)
            configure(connection, self.path, self._durability, self._busy_seconds)
            migrate(connection, self.path)
            self._file, self._wal = file, _identify(self._wal_at)
            self.opened += 1
        except BaseException:
            connection.close()
            raise
        return connection


def _identify(path: str | Path) -> _Identity:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _fold(connection: sqlite3.Connection) -> bool:
    """Bring what is only in the log into the file, wherever that lies now; whether all of it is there."""
    with suppress(*FAULTS):
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy
    return False


def _count(connection: sqlite3.Connection) -> int | None:
    with suppress(*FAULTS):
        found: int = connection.execute("SELECT count(*) FROM responses WHERE deleted = 0").fetchone()[0]
        return found
    return None
