"""The key of our reasoning envelopes: a private file beside the database, so that they outlive a restart.

In: the database's path. Out: the key, the same for every process that asks. The file appears whole or not at all, and
on the disk before its name is: whatever ends the process meanwhile, the next one finds a key or none, never a piece. An
empty file is what version 0.1.0 left behind when it was ended there; it holds nothing that could be lost.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from isthmus.errors import ConfigError

ON_WINDOWS: Final = os.name == "nt"
_SIZE: Final = 32
_SHORTEST: Final = 16
_ONLY_OWNER: Final = 0o600


def key_path(database: Path) -> Path:
    """Where it lies, of a store and of a copy."""
    return database.with_name(f"{database.name}.key")


def envelope_key(database: Path) -> bytes:
    """The key beside `database`; made, with the folder, where there is none yet."""
    path = key_path(database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        key = _read(path)
        if not key:
            with _alone(path.parent):
                key = _read(path) or _make(path)
    except OSError as error:
        words = f"`{path}` cannot be read or made: {error.strerror}"
        elsewhere = "choose another `store.url`, for one with `ISTHMUS_STORE_URL=sqlite:PATH` in the environment"
        raise ConfigError(f"{words}; {elsewhere}") from error
    if len(key) < _SHORTEST:
        raise ConfigError(f"`{path}` is not a key; delete it to get a new one, and old reasoning is not understood")
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _make(path: Path) -> bytes:
    """A new key, or that of somebody who was faster."""
    key = secrets.token_bytes(_SIZE)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), _ONLY_OWNER)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():  # an empty one: we are alone here, so nobody else replaces it
            os.replace(draft, path)
        else:
            _give_name(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return _read(path)


def _give_name(draft: Path, path: Path) -> None:
    """Unless there is a file of that name: where folders cannot be locked, this decides who was first."""
    with suppress(FileExistsError):
        if ON_WINDOWS:
            os.rename(draft, path)  # refuses to replace a file there
            return
        try:
            os.link(draft, path)
        except (PermissionError, NotImplementedError):  # file systems without links
            os.replace(draft, path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time, as far as the system can."""
    descriptor = -1
    with suppress(ImportError, OSError):  # Windows has no such locks, and some network file systems have none either
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)  # and with it the lock


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
