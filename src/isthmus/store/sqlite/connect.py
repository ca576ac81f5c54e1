"""Opening the file, and saying plainly why it cannot be used.

`durability` decides what `save` has made sure of when it returns:

- `process`: the response survives anything that happens to this process (kill -9, crash, out of memory). After
  a power cut or a crash of the operating system the file is intact, but the last moments before it may be missing.
- `power`: it survives a power cut too, as far as the disk tells the truth: each group of saves waits for the disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar

from isthmus.errors import ConfigError, StoreDamaged, StoreUnavailable
from isthmus.store.sqlite.known import Writing

Durability = Literal["process", "power"]
C = TypeVar("C", bound=sqlite3.Connection)
Fault = sqlite3.Error | UnicodeDecodeError
FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises. The second is Python's: the words of an error quote a damaged schema, and are no text then."""

_SYNCHRONOUS: Final[dict[str, str]] = {"process": "NORMAL", "power": "FULL"}
_ADVICE: Final = {
    sqlite3.SQLITE_PERM: "make the file and its folder writable for this user",
    sqlite3.SQLITE_BUSY: "another process is holding it; close that process, or wait for it to finish",
    sqlite3.SQLITE_LOCKED: "another process is holding it; close that process, or wait for it to finish",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable for this user",
    sqlite3.SQLITE_IOERR: "check the disk: it could not be read or written",
    sqlite3.SQLITE_CORRUPT: "it is damaged; run `isthmus store check`, or restore a backup",
    sqlite3.SQLITE_FULL: "free some space, or run `isthmus store prune`",
    sqlite3.SQLITE_CANTOPEN: "make the file and its folder writable for this user",
    sqlite3.SQLITE_PROTOCOL: "another process is holding it; close that process, or wait for it to finish",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database; restore a backup, or point `store.url` to another path",
}
"""SQLite's primary codes that speak of the file, not of what was asked of it."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the file cannot be used, and what an operator can do about it."""

    reason: str
    advice: str
    lost: bool = False
    """Whether what is open here is no longer what stands at the path: it can be neither written nor read."""
    there: bool = True
    """Whether anything stands at the path."""
    code: int = 0
    """SQLite's primary code, where it was SQLite that said so."""
    message: str = ""
    """The whole of it, where somebody has said it already."""

    def error(self, path: Path) -> StoreUnavailable:
        """A new one each time: an exception that is raised again and again collects the traces of all its raisers."""
        return StoreUnavailable(self.message or f"the store `{path}` cannot be used ({self.reason}): {self.advice}")


def connect_writer(path: Path, busy_seconds: float) -> Writing:
    """A connection to the file, created if need be; nothing in an existing file is touched yet."""
    _prepare_file(path)
    return connect(path, busy_seconds)


def connect(path: Path, busy_seconds: float) -> Writing:
    return _connect(path, busy_seconds, Writing)


def _connect(path: Path, busy_seconds: float, kind: type[C]) -> C:
    """A connection to the file that stands there."""
    # Never made in passing: in place of a file that was deleted it would be an empty store that nobody asked for.
    # Each connection is used by one thread at a time, but closed by another.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        factory=kind,
    )


def connect_reader(path: Path, busy_seconds: float) -> sqlite3.Connection:
    connection = _connect(path, busy_seconds, sqlite3.Connection)
    try:
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def configure(connection: sqlite3.Connection, path: Path, durability: Durability, busy_seconds: float) -> None:
    """Make the file and the connection ready for writing."""
    try:
        if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
            # Can only be chosen while the file is empty; lets `prune` give space back piece by piece.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _use_wal(connection, busy_seconds)
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        if durability == "power":
            connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not empty the drive's cache
        connection.execute("PRAGMA journal_size_limit = 67108864")
        # What may have to be taken back is noted in memory: more than 64 kB of it would go to a file of its own.
        connection.execute("PRAGMA temp_store = MEMORY")
        # A page that is written again and again is brought from the log into the file once in 16 MB, not in 4.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        # Deleted content is overwritten where that needs no extra IO.
        connection.execute("PRAGMA secure_delete = FAST")
    except FAULTS as error:
        raise unavailable(error, path) from error


def concerns_file(error: Fault) -> bool:
    """Whether it speaks of the file; else of one question, which somebody got wrong."""
    return _code(error) in _ADVICE


def trouble_of(error: Fault) -> Trouble:
    return Trouble(_words(error), _ADVICE.get(_code(error), "check the file and its disk"), code=_code(error))


def unavailable(error: Fault, path: Path) -> ConfigError:
    """SQLite's error in our words: a page that is damaged concerns what is on it, anything else the whole store."""
    if _code(error) == sqlite3.SQLITE_CORRUPT or "Could not decode to UTF-8" in str(error):
        where = f"the store `{path}` is damaged where this is stored ({_words(error)})"
        return StoreDamaged(f"{where}: run `isthmus store check`")
    return trouble_of(error).error(path)


def _prepare_file(path: Path) -> None:
    try:
        if not path.parent.is_dir():
            raise ConfigError(f"the store `{path}` needs the folder `{path.parent}`: create it, or change `store.url`")
        if path.is_dir():
            raise ConfigError(f"the store `{path}` is a folder: name a file in it in `store.url`")
        # Conversations are private: the file (and with it the WAL) is for this user only.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreUnavailable(
            f"the store `{path}` cannot be written ({error.strerror}): make it writable, or change `store.url`"
        ) from error


def _words(error: Fault) -> str:
    return "malformed database schema" if isinstance(error, UnicodeDecodeError) else str(error)


def _code(error: Fault) -> int:
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    # The low byte is the primary code, the others say more. Errors that Python raises itself have none.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself when two processes turn a new file to WAL at the same moment.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError(f"unable to open in WAL mode, only in {mode}")
        return
