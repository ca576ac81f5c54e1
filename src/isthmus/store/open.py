"""From a store URL to a store: `memory:`, `sqlite:path` (relative), `sqlite:///absolute/path`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from isthmus.bridge.types.plan import Lesson
from isthmus.errors import ConfigError
from isthmus.ports import Store, StoredWord
from isthmus.store.sqlite.connect import FAULTS, Durability, connect_reader, unavailable
from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.reads import load_lessons, load_words
from isthmus.store.sqlite.store import SqliteStore

if TYPE_CHECKING:  # loaded by whoever looks after a store; a server does not
    from isthmus.ports.traces import TraceStore
    from isthmus.store.sqlite.backup import BackedUp
    from isthmus.store.sqlite.examine import Examined

_T = TypeVar("_T")
DEFAULT_EVENT_BYTES: Final = 16 * 1024 * 1024
_BRIEFLY: Final = 1.0
"""Seconds that a look from outside waits for a busy file."""
_PATIENTLY: Final = 10.0
"""The same for somebody who looks after it."""


def open_store(
    url: str,
    *,
    durability: Durability = "process",
    relative_to: Path | None = None,
    max_event_bytes: int = DEFAULT_EVENT_BYTES,
) -> Store:
    """Open or create the store that `url` names. Relative paths start at `relative_to`, or the working folder.

    Does its IO in the calling thread: meant for the start of a process. Close it with `await store.aclose()`.
    """
    if durability not in ("process", "power"):
        raise ConfigError(
            f"`store.durability` is `{durability}`: use `process` (survives kill -9) or `power` (survives a power cut)",
            param="store.durability",
        )
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory" if not rest.strip("/"):
            from isthmus.store.memory import MemoryStore

            return MemoryStore(max_event_bytes=max_event_bytes)
        case "sqlite":
            path = _sqlite_path(url, rest, relative_to)
            return SqliteStore(path, durability=durability, max_event_bytes=max_event_bytes)
        case "postgres" | "postgresql":
            raise ConfigError(
                "`store.url` names Postgres: that store is an extra which comes later; use `sqlite:isthmus.db` for now",
                param="store.url",
            )
        case _:
            raise ConfigError(
                f"`store.url` is `{url}`: use `memory:`, `sqlite:isthmus.db` or `sqlite:///absolute/path.db`",
                param="store.url",
            )


def database_path(url: str) -> Path | None:
    """The file of a store that is one, whether it is there or not."""
    scheme, _, rest = url.partition(":")
    return _sqlite_path(url, rest, None) if scheme.lower() == "sqlite" else None


def traces_path(url: str) -> Path | None:
    """Where the traces lie beside a store that is a file: `isthmus.db` → `isthmus.traces.db`."""
    path = database_path(url)
    return None if path is None else path.with_name(f"{path.stem}.traces{path.suffix}")


def open_traces(url: str) -> TraceStore:
    """The traces beside the store that `url` names; in memory beside one in memory. Nothing is opened before it is
    used. Close it with `close()`."""
    from isthmus.store.traces.sqlite import SqliteTraces

    return SqliteTraces(traces_path(url))


def examine_store(url: str, *, repair: bool = False) -> Examined:
    """Compare everything in the store at `url` with what was written, also while a gateway uses it."""
    from isthmus.store.sqlite.examine import examine

    path = _there(url)
    with closing(Medium(path, "process", _PATIENTLY).open()) as connection:
        return examine(connection, repair=repair)


def back_up_store(url: str, target: Path, *, force: bool = False) -> BackedUp:
    """Copy the store at `url` as it is at one moment, also while a gateway uses it."""
    from isthmus.store.sqlite.backup import back_up

    return back_up(_there(url), target.expanduser(), force=force)


def _there(url: str) -> Path:
    path = database_path(url)
    if path is None:
        raise ConfigError(f"`{url}` lives and dies with its gateway; there is nothing on disk to look at")
    if not path.is_file():
        raise ConfigError(f"there is no store at `{path}`: name it with `--store sqlite:PATH`")
    return path


def read_lessons(url: str, provider: str, model: str, *, since: float) -> list[Lesson]:
    """What the store at `url` knows about a model, for a look from outside."""
    return _look(url, lambda connection: load_lessons(connection, provider, model, since))


def read_words(url: str, *, since: float) -> list[StoredWord]:
    """What servers said of themselves, for a look from outside."""
    return _look(url, lambda connection: load_words(connection, since))


def _look(url: str, read: Callable[[sqlite3.Connection], list[_T]]) -> list[_T]:
    """A store that is not there is not made."""
    path = database_path(url)
    if path is None or not path.is_file():
        return []
    try:
        with closing(connect_reader(path, _BRIEFLY)) as connection:
            return read(connection)
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []  # written by a version that learned nothing yet
        raise unavailable(error, path) from error
    except FAULTS as error:
        raise unavailable(error, path) from error


def _sqlite_path(url: str, rest: str, relative_to: Path | None) -> Path:
    if rest == ":memory:":
        raise ConfigError("`store.url` is `sqlite::memory:`: use `memory:` to store nothing on disk", param="store.url")
    if rest.startswith("//"):
        if not rest.startswith("///"):
            raise ConfigError(
                f"`store.url` is `{url}`: use `sqlite:relative.db`, or three slashes for an absolute path",
                param="store.url",
            )
        rest = rest[2:]
        # `sqlite:///C:/folder/file.db`
        rest = rest[1:] if rest[2:3] == ":" else rest
    if not rest or "\0" in rest:
        raise ConfigError(f"`store.url` is `{url}`: name the file, as in `sqlite:isthmus.db`", param="store.url")
    return (relative_to or Path()) / Path(rest).expanduser()
