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

_KEPT: Final = 16
"""Databases at a time: each takes eight megabytes, and a test needs few."""
_databases: dict[Path, str] = {}


def database_of(folder: Path) -> str:
    """The URL of the database that belongs to a folder, with all tables."""
    if folder not in _databases:
        if len(_databases) >= _KEPT:
            oldest = next(iter(_databases))
            server().execute(f'DROP DATABASE "{name_of(_databases.pop(oldest))}" WITH (FORCE)')
        _databases[folder] = server().new_database(_template())
    return _databases[folder]


def empty_database() -> str:
    """The URL of one without any table."""
    return server().new_database()


def name_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


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
