from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Connection, Options, connect
from isthmus.store.postgres.store import PostgresStore
from postgres import database_of


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Of a database with all tables, and nothing in them."""
    return Options(Address(database_of(tmp_path)))


@pytest.fixture
def connection(options: Options) -> Iterator[Connection]:
    with closing(connect(options)) as made:
        yield made


@pytest.fixture
def another(options: Options) -> Iterator[Callable[[], Connection]]:
    made: list[Connection] = []

    def make() -> Connection:
        made.append(connect(options))
        return made[-1]

    yield make
    for each in made:
        each.close()


Opened = Callable[[], PostgresStore]
