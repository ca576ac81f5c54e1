"""Opening the file, and saying plainly why it cannot be opened.

`durability` decides what `save` has made sure of when it returns:

- `process`: the response survives anything that happens to this process (kill -9, crash, out of memory). After
  a power cut or a crash of the operating system the file is intact, but the last moments before it may be missing.
- `power`: it survives a power cut too, as far as the disk tells the truth: each group of saves waits for the disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Final, Literal

from isthmus.errors import ConfigError

Durability = Literal["process", "power"]

_SYNCHRONOUS: Final[dict[str, str]] = {"process": "NORMAL", "power": "FULL"}


def connect_writer(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A connection to the file, created if need be; nothing in an existing file is touched yet."""
    _prepare_file(path)
    return _connect(path, busy_seconds)


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
        # Deleted content is overwritten where that needs no extra IO.
        connection.execute("PRAGMA secure_delete = FAST")
    except sqlite3.Error as error:
        raise unavailable(error, path) from error


def connect_reader(path: Path, busy_seconds: float) -> sqlite3.Connection:
    connection = _connect(path, busy_seconds)
    connection.execute("PRAGMA query_only = ON")
    return connection


def unavailable(error: sqlite3.Error, path: Path) -> ConfigError:
    """What an operator can do about it."""
    reason = str(error)
    if "locked" in reason or "busy" in reason:
        advice = "another process is holding it; close that process, or wait for it to finish"
    elif "not a database" in reason:
        advice = "it is not an SQLite database; point `store.url` to another path"
    elif "malformed" in reason or "corrupt" in reason:
        advice = "it is damaged; restore a backup, or move it away to start afresh"
    elif "full" in reason:
        advice = "free some space, or run `isthmus store prune`"
    elif "readonly" in reason or "unable to open" in reason:
        advice = "make the file and its folder writable for this user"
    else:
        advice = "check the file and its disk"
    return ConfigError(f"the store `{path}` cannot be used ({reason}): {advice}", code="store_unavailable")


def _prepare_file(path: Path) -> None:
    try:
        if not path.parent.is_dir():
            raise ConfigError(f"the store `{path}` needs the folder `{path.parent}`: create it, or change `store.url`")
        if path.is_dir():
            raise ConfigError(f"the store `{path}` is a folder: name a file in it in `store.url`")
        # Conversations are private: the file (and with it the WAL) is for this user only.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise ConfigError(
            f"the store `{path}` cannot be written ({error.strerror}): make it writable, or change `store.url`",
            code="store_unavailable",
        ) from error


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    # Each connection is used by one thread at a time, but closed by another.
    return sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)


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
