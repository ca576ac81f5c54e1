"""Keys in the database: one change at a time, sealed, and never told by a guess."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from isthmus.errors import RequestRefused, StoreDamaged
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.store import PostgresStore
from keyed import deed, stored_key

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_of_replicas_that_give_one_name_at_once_one_does(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        before = await one.keys_mark()
        made = await asyncio.gather(
            *((one, two)[at % 2].add_key(stored_key("ann", id=f"key_{at}"), deed()) for at in range(6)),
            return_exceptions=True,
        )
        assert sum(each is None for each in made) == 1
        assert all(each is None or isinstance(each, RequestRefused) for each in made)
        assert len(await two.keys()) == len(await two.deeds()) == 1
        assert await two.keys_mark() == before + 1

    asked(ask)


def test_a_key_that_was_changed_behind_our_back_lets_nobody_in(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.add_key(stored_key(), deed())
        connection.execute("UPDATE keys SET content = replace(convert_from(content, 'UTF8'), 'ann', 'eve')::bytea")
        with pytest.raises(StoreDamaged):
            await store.keys()

    asked(ask)
