"""The file that traces are kept in: how it is made, and why it cannot be used.

    kinds     (whose, by which door, to which model, how it ended): what lists are filtered and totals grouped by
    traces    one row for each request: its kind, its summary, and behind that all the rest, which a list does not read
    patterns  what many traces have in common: of these the row above has only the rest (`patterns.py`)
    places    the words (ids, threads) of each chunk of traces, in one row (`places.py`)
    totals    sums for each kind and five minutes, hour and day; they outlive traces that were dropped for their size
    spreads   how long things took, likewise, in steps

There are few kinds, however many traces there are: a filter finds the kinds first, then the newest traces of each, so
no question ever looks at all traces. Ids are random, and an index of random words touches a page of the file for each
new one; so there is none, and whoever looks for a word looks through all chunks.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from isthmus.errors import StoreUnavailable
from isthmus.store.sqlite.connect import FAULTS, trouble_of
from isthmus.store.traces.earlier import bring_up
from isthmus.store.traces.sqlite_tables import SqliteTables

SLOTS: Final = (300, 3_600, 86_400)
"""Seconds of the steps that sums are kept for: a long time is a few days, and what is left over at its ends."""
_APPLICATION: Final = 0x1_57_31_75
_VERSION: Final = 2
_BUSY: Final = 5.0
_WAL_LIMIT: Final = 16_777_216

_TABLES: Final = """
CREATE TABLE kinds (
    kind INTEGER PRIMARY KEY,
    owner TEXT NOT NULL, key TEXT NOT NULL, client TEXT NOT NULL, door TEXT NOT NULL, provider TEXT NOT NULL,
    model TEXT NOT NULL, outcome TEXT NOT NULL, code TEXT NOT NULL, changed INTEGER NOT NULL,
    UNIQUE (owner, key, client, door, provider, model, outcome, code, changed)
);
CREATE TABLE traces (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    ended REAL NOT NULL, kind INTEGER NOT NULL, summary BLOB NOT NULL, packed INTEGER NOT NULL, detail BLOB,
    pattern INTEGER
);
CREATE INDEX traces_kind ON traces (kind);
CREATE TABLE patterns (
    pattern INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, texts BLOB NOT NULL, last INTEGER NOT NULL
);
CREATE INDEX patterns_last ON patterns (last);
CREATE TABLE places (chunk INTEGER PRIMARY KEY, words BLOB NOT NULL);
CREATE TABLE totals (
    level INTEGER NOT NULL, slot INTEGER NOT NULL, kind INTEGER NOT NULL,
    requests INTEGER NOT NULL, failed INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL, retries INTEGER NOT NULL,
    degraded INTEGER NOT NULL, ignored INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (level, slot, kind)
) WITHOUT ROWID;
CREATE TABLE spreads (
    level INTEGER NOT NULL, slot INTEGER NOT NULL, kind INTEGER NOT NULL, what INTEGER NOT NULL, step INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (level, slot, kind, what, step)
) WITHOUT ROWID;
"""


def open_writer(path: Path | None) -> SqliteTables:
    """The connection that writes; the file is made where there is none. `None`: in memory."""
    try:
        if path is not None:
            # What people asked is private: the file (and with it the log) is for this user only.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = _connect(path)
        try:
            if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
            connection.execute("PRAGMA secure_delete = FAST")
            _make_tables(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection
    except OSError as error:
        raise unusable(path, error.strerror or "", "make the file and its folder writable for this user") from error
    except FAULTS as error:
        raise explained(path, error) from error


def open_reader(path: Path) -> SqliteTables:
    try:
        connection = _connect(path)
        try:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            version = _check_version(connection, path)
            connection.execute("COMMIT")
            if version != _VERSION:
                open_writer(path).close()
        except BaseException:
            connection.close()
            raise
        return connection
    except FAULTS as error:
        raise explained(path, error) from error


def is_made(path: Path) -> bool:
    """Whether there are traces to look at; looking for them makes none."""
    if not path.is_file() or not path.stat().st_size:
        return False
    try:
        connection = _connect(path)
        try:
            connection.execute("BEGIN")  # its version and its tables, as of one moment: it may be made just now
            return _check_version(connection, path) > 0
        finally:
            connection.close()
    except FAULTS as error:
        raise explained(path, error) from error


def explained(path: Path | None, error: sqlite3.Error | UnicodeDecodeError) -> StoreUnavailable:
    trouble = trouble_of(error)
    return unusable(path, trouble.reason, "check the disk, or delete it: a new one is begun")


def unusable(path: Path | None, reason: str, advice: str) -> StoreUnavailable:
    return StoreUnavailable(f"the traces `{path or 'in memory'}` cannot be used ({reason}): {advice}")


def _connect(path: Path | None) -> SqliteTables:
    where = f"{path.absolute().as_uri()}?mode=rw" if path is not None else "file::memory:"
    return sqlite3.connect(
        where, uri=True, timeout=_BUSY, isolation_level=None, check_same_thread=False, factory=SqliteTables
    )


def _make_tables(connection: sqlite3.Connection, path: Path | None) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _check_version(connection, path)
        if version == 1:
            bring_up(connection)
        if not version:
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        if version != _VERSION:
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check_version(connection: sqlite3.Connection, path: Path | None) -> int:
    """Which of ours the tables are; 0: there are none yet. Raises where they are somebody else's."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    ours = connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION
    if ours and 0 < version <= _VERSION:
        return version
    if version or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise unusable(path, "another program or a later version made it", "name another `store.url`, or delete it")
    return 0
