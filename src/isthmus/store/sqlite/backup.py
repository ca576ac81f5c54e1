"""A copy of the store as it is at one moment, made while others write to it.

In: the path of a store, and where the copy goes. Out: one file, whole and for its user only, and beside it the key of
the envelopes: without it, what clients carry from this store would open nowhere. The copy has its name only when it is
complete.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isthmus.errors import ConfigError, StoreDamaged
from isthmus.store.envelope_key import key_path
from isthmus.store.sqlite.connect import FAULTS, connect_reader, unavailable

_PAGES: Final = 4096
"""Copied in one go; in between, the process can be interrupted."""
_BUSY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class BackedUp:
    responses: int
    conversations: int
    bytes: int
    key: Path | None
    """Where the key is; `None`: there was none to copy."""


def back_up(store: Path, target: Path, *, force: bool = False) -> BackedUp:
    key = key_path(target)
    _check_places(store, target, key, force)
    part = target.with_name(f"{target.name}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        counts = _copy(store, part)
        _check_copy(store, part)
        _flush(part)
        for left in ("-wal", "-shm"):  # of an older copy that somebody opened: they do not belong to this one
            target.with_name(target.name + left).unlink(missing_ok=True)
        os.replace(part, target)
        copied = _copy_key(key_path(store), key)
    except OSError as error:
        raise ConfigError(f"the copy `{target}` cannot be written ({error.strerror}): choose another place") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return BackedUp(*counts, target.stat().st_size, key if copied else None)


def _check_places(store: Path, target: Path, key: Path, force: bool) -> None:
    if not target.parent.is_dir():
        raise ConfigError(f"the copy `{target}` needs the folder `{target.parent}`: create it")
    if target.is_dir():
        raise ConfigError(f"`{target}` is a folder: name a file in it")
    if target.exists() and target.samefile(store):
        raise ConfigError(f"`{target}` is the store itself: choose another place for the copy")
    for path in (target, key):
        if path.exists() and not force:
            raise ConfigError(f"`{path}` is there already: choose another name, or replace it with `--force`")


def _copy(store: Path, part: Path) -> tuple[int, int]:
    """How many responses and conversations there are in it."""
    try:
        with (
            closing(connect_reader(store, _BUSY_SECONDS)) as reading,
            closing(sqlite3.connect(part, isolation_level=None)) as writing,
        ):
            # One moment for the whole copy: SQLite would begin anew whenever somebody writes.
            reading.execute("BEGIN")
            (responses,) = reading.execute("SELECT count(*) FROM responses WHERE deleted = 0").fetchone()
            reading.backup(writing, pages=_PAGES)
            return responses, _conversations(reading)
    except FAULTS as error:
        raise unavailable(error, store) from error


def _conversations(reading: sqlite3.Connection) -> int:
    known = reading.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'conversations'").fetchone()
    if known is None:  # written by a version that had none, and not opened since
        return 0
    count: int = reading.execute("SELECT count(*) FROM conversations").fetchone()[0]
    return count


def _check_copy(store: Path, part: Path) -> None:
    """A copy of something damaged is no backup: better to know now than when it is needed."""
    try:
        # As it lies there: opened in the ordinary way, it would get a log beside it.
        with closing(sqlite3.connect(f"{part.absolute().as_uri()}?immutable=1", uri=True)) as copy:
            found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    except FAULTS as error:
        found = str(error)
    if found != "ok":
        raise StoreDamaged(f"the store `{store}` is damaged ({found}), and so is its copy: run `isthmus store check`")


def _copy_key(source: Path, target: Path) -> bool:
    try:
        key = source.read_bytes()
    except FileNotFoundError:
        return False
    target.unlink(missing_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    _flush(target)
    return True


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
