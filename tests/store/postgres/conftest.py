from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from inspect import signature
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


@pytest.fixture
def asked(options: Options) -> Callable[[Callable[..., Awaitable[None]]], None]:
    """Asks a question of as many stores on one database as it has arguments."""

    def ask(question: Callable[..., Awaitable[None]]) -> None:
        async def main() -> None:
            stores = [PostgresStore(options, poll_seconds=60.0) for _ in signature(question).parameters]
            try:
                await question(*stores)
            finally:
                for store in stores:
                    await store.aclose()

        asyncio.run(main())

    return ask
