"""From a store URL to a store: `memory:`, `sqlite:path` (relative), `sqlite:///absolute/path`, `postgresql://…`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from isthmus.bridge.types.plan import Lesson
from isthmus.errors import ConfigError
from isthmus.ports import Store, StoredWord
from isthmus.store.sqlite.connect import FAULTS, Durability, connect_reader, unavailable
from isthmus.store.sqlite.learned import load_lessons, load_words
from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.store import SqliteStore, Timed

if TYPE_CHECKING:  # loaded by whoever looks after a store; a server does not
    from isthmus.ports.traces import TraceStore
    from isthmus.store.damage import Examined
    from isthmus.store.postgres.connect import Options

_T = TypeVar("_T")
DEFAULT_EVENT_BYTES: Final = 16 * 1024 * 1024
_BRIEFLY: Final = 1.0
"""Seconds that a look from outside waits for a busy file."""
_PATIENTLY: Final = 10.0
"""The same for somebody who looks after it."""
_POSTGRES: Final = ("postgres", "postgresql")


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What concerns a store that is a server, by the names of its settings."""

    schema: str = "isthmus"
    max_connections: int = 8
    connect_timeout: float = 5.0
    statement_timeout: float = 30.0


def open_store(
    url: str,
    *,
    durability: Durability = "process",
    relative_to: Path | None = None,
    max_event_bytes: int = DEFAULT_EVENT_BYTES,
    timed: Timed = lambda operation, seconds: None,
    server: ServerLimits = ServerLimits(),  # noqa: B008  it is frozen
) -> Store:
    """Open or create the store that `url` names. Relative paths start at `relative_to`, or the working folder.

    Does its IO in the calling thread: meant for the start of a process. Close it with `await store.aclose()`. `timed`
    hears how long each read and write takes where a disk has to do with it; `server` is for a store that is one.
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
            return SqliteStore(path, durability=durability, max_event_bytes=max_event_bytes, timed=timed)
        case "postgres" | "postgresql":
            options = postgres_options(url, durability, server)
            from isthmus.store.postgres.store import PostgresStore

            most = server.max_connections
            return PostgresStore(options, connections=most, max_event_bytes=max_event_bytes, timed=timed)
        case _:
            raise ConfigError(
                f"`store.url` is `{url}`: use `memory:`, `sqlite:isthmus.db`, `sqlite:///absolute/path.db` or"
                " `postgresql://USER@HOST/DATABASE`",
                param="store.url",
            )


def is_server(url: str) -> bool:
    """Whether it is one that several machines can share."""
    return url.partition(":")[0].lower() in _POSTGRES


def shared_key(url: str, *, server: ServerLimits = ServerLimits()) -> bytes:  # noqa: B008  it is frozen
    """The key of the envelopes in a store that is a server, made by whoever asks first."""
    options = postgres_options(url, "power", server)
    from isthmus.store.postgres.secrets import envelope_key

    return envelope_key(options)


def postgres_options(url: str, durability: Durability, server: ServerLimits) -> Options:
    try:
        from isthmus.store.postgres.address import Address
        from isthmus.store.postgres.connect import Options
    except ModuleNotFoundError as error:
        words = "`store.url` names PostgreSQL, which needs an extra: `pip install 'isthmus[postgres]'`"
        raise ConfigError(words, param="store.url") from error
    return Options(
        Address(url),
        schema=server.schema,
        durability=durability,
        connect_timeout=server.connect_timeout,
        statement_timeout=server.statement_timeout,
    )


def database_path(url: str) -> Path | None:
    """The file of a store that is one, whether it is there or not."""
    scheme, _, rest = url.partition(":")
    return _sqlite_path(url, rest, None) if scheme.lower() == "sqlite" else None


def traces_path(url: str) -> Path | None:
    """Where the traces lie beside a store that is a file: `isthmus.db` → `isthmus.traces.db`."""
    path = database_path(url)
    return None if path is None else path.with_name(f"{path.stem}.traces{path.suffix}")


def open_traces(url: str, *, server: ServerLimits = ServerLimits()) -> TraceStore:  # noqa: B008  it is frozen
    """The traces beside the store that `url` names: on the same server, or in a file; in memory beside one in memory.
    Nothing is opened before it is used. Close it with `close()`."""
    if is_server(url):
        options = postgres_options(url, "process", server)
        from isthmus.store.traces.postgres import PostgresTraces

        return PostgresTraces(options)
    from isthmus.store.traces.sqlite import SqliteTraces

    return SqliteTraces(traces_path(url))


def check_there(url: str, *, server: ServerLimits = ServerLimits()) -> None:  # noqa: B008  it is frozen
    """Refuse where there is no store to look at: opening it would make one."""
    if is_server(url):
        options = postgres_options(url, "process", server)
        from isthmus.store.postgres import outside

        outside.check_there(options)
        return
    path = database_path(url)
    if path is None:
        raise ConfigError("a `memory:` store lives and dies with its gateway; there is nothing on disk to look at")
    if not path.is_file() or not path.stat().st_size:
        raise ConfigError(f"there is no store at `{path}`; is `store.url`, or `--store`, right?", param="store.url")


class Schema(msgspec.Struct, frozen=True):
    """How a store is laid out."""

    version: str
    """The newest step that ran; empty: nothing was made there yet."""
    missing: tuple[str, ...]
    """Steps that the next gateway runs when it starts."""
    bytes: int


def read_schema(url: str, *, server: ServerLimits = ServerLimits()) -> Schema:  # noqa: B008  it is frozen
    """How far the store at `url` is, for a look from outside; refused is what a gateway would refuse."""
    if is_server(url):
        options = postgres_options(url, "process", server)
        from isthmus.store.postgres.outside import look_at_schema

        return Schema(*look_at_schema(options))
    from isthmus.store.sqlite.migrations import MIGRATIONS, applied_steps, check_file

    path = _there(url)
    try:
        with closing(connect_reader(path, _BRIEFLY)) as connection:
            check_file(connection, path)
            done = applied_steps(connection, path)
            pages, size = (connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size"))
    except FAULTS as error:
        raise unavailable(error, path) from error
    steps = [name for name, _ in MIGRATIONS]
    return Schema(max(done, default=""), tuple(name for name in steps if name not in done), pages * size)


def examine_store(
    url: str,
    *,
    repair: bool = False,
    server: ServerLimits = ServerLimits(),  # noqa: B008  it is frozen
) -> Examined:
    """Compare everything in the store at `url` with what was written, also while a gateway uses it."""
    if is_server(url):
        options = postgres_options(url, "power", server)
        from isthmus.store.postgres.outside import examine_all

        return examine_all(options, repair=repair)
    from isthmus.store.sqlite.examine import examine

    path = _there(url)
    with closing(Medium(path, "process", _PATIENTLY).open()) as connection:
        return examine(connection, repair=repair)


def _there(url: str) -> Path:
    path = database_path(url)
    if path is None:
        raise ConfigError(f"`{url}` lives and dies with its gateway; there is nothing on disk to look at")
    if not path.is_file():
        raise ConfigError(f"there is no store at `{path}`: name it with `--store sqlite:PATH`")
    return path


def read_lessons(
    url: str,
    provider: str,
    model: str,
    *,
    since: float,
    server: ServerLimits = ServerLimits(),  # noqa: B008  it is frozen
) -> list[Lesson]:
    """What the store at `url` knows about a model, for a look from outside."""
    if is_server(url):
        options = postgres_options(url, "process", server)
        from isthmus.store.postgres.outside import look_at_lessons

        return look_at_lessons(options, provider, model, since)
    return _look(url, lambda connection: load_lessons(connection, provider, model, since))


def read_words(
    url: str,
    *,
    since: float,
    server: ServerLimits = ServerLimits(),  # noqa: B008  it is frozen
) -> list[StoredWord]:
    """What servers said of themselves, for a look from outside."""
    if is_server(url):
        options = postgres_options(url, "process", server)
        from isthmus.store.postgres.outside import look_at_words

        return look_at_words(options, since)
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
