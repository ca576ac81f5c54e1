"""The PostgreSQL of the tests: one server for each process that runs them, one database for each folder of a test."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options, connect
from isthmus.store.postgres.migrations import migrate
from isthmus.testing.postgres import PostgresServer

_KEPT: Final = 6
"""Databases at a time: to make one takes longer than most tests, so the longest unused is emptied and used again."""
_databases: dict[Path, str] = {}


def database_of(folder: Path) -> str:
    """The URL of the database that belongs to a folder, with all tables."""
    if folder not in _databases:
        if len(_databases) >= _KEPT:
            url = _databases.pop(next(iter(_databases)))
            _empty(name_of(url))
        else:
            url = server().new_database(_template())
        _databases[folder] = url
    return _databases[folder]


def empty_database() -> str:
    """The URL of one without any table."""
    return server().new_database()


def name_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _empty(database: str) -> None:
    """Nobody is connected any more who should be."""
    kept = "('isthmus_migrations', 'keys_mark')"
    listed = f"SELECT tablename FROM pg_tables WHERE schemaname = 'isthmus' AND tablename NOT IN {kept}"
    tables = [table for (table,) in server().execute(listed, database)]
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    away = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"
    server().execute(";".join([away, *(f"DELETE FROM isthmus.{table}" for table in tables)]), database)


@cache
def server() -> PostgresServer:
    """It ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="isthmus-postgres-"))
    made = PostgresServer(folder)
    made.start()

    def end() -> None:
        made.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return made


@cache
def _template() -> str:
    url = empty_database()
    options = Options(Address(url))
    with closing(connect(options)) as connection:
        migrate(connection, options)
    return name_of(url)
