"""Saves of many processes at once, each whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.ports import EventBatch
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.store import PostgresStore
from isthmus.store.postgres.writes import as_stored
from stored import message, turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]
SHARED = tuple(message(f"said by all {number}", f"shared_{number}") for number in range(20))


def test_many_that_share_their_items_save_and_delete_at_once(asked: Asked, connection: Connection) -> None:
    async def live(store: PostgresStore, number: int) -> None:
        for again in range(4):
            id = f"r{number}_{again}"
            assert await store.save(turn(id, status="in_progress", input=SHARED))
            assert await store.save(turn(id, input=SHARED[: 10 + number % 10]))
            loaded = await store.load(id)
            assert loaded is not None
            assert loaded.input == SHARED[: 10 + number % 10]
            assert await store.delete(id)

    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        await asyncio.gather(*(live(store, number) for number in range(12) for store in (one,)))
        await asyncio.gather(
            *(live(store, number + 100) for number in range(6) for store in (one, two) if number % 2 == (store is two))
        )
        assert connection.execute("SELECT count(*) FROM parts").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pieces").fetchone() == (0,), "nothing is left behind"

    asked(ask)


def test_of_two_that_save_the_same_new_id_both_are_one_response(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        for number in range(10):
            records = [turn(f"r{number}", input=(message(words),)) for words in ("one", "two")]
            await asyncio.gather(one.save(records[0]), two.save(records[1]))
            assert await one.load(f"r{number}") in records
        assert (await one.stats()).responses == 10

    asked(ask)


def test_events_of_two_writers_never_leave_a_gap(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        await one.save(turn("r", status="in_progress"))
        answers = await asyncio.gather(
            *(store.append_events("r", EventBatch(0, (b"%d" % number,))) for number, store in enumerate((one, two))),
            return_exceptions=True,
        )
        assert sorted(isinstance(answer, ValueError) for answer in answers) == [False, True]
        assert len(await one.events("r")) == 1

    asked(ask)


def test_words_that_postgres_cannot_hold_are_replaced() -> None:
    record = turn("r")
    assert as_stored(record) is record
    from msgspec.structs import replace

    assert as_stored(replace(record, model="a\0b")).model == "a\ufffdb"


def test_a_model_with_such_a_name_is_saved_and_read(asked: Asked) -> None:
    from msgspec.structs import replace

    async def ask(store: PostgresStore) -> None:
        assert await store.save(replace(turn("r"), model="a\0b"))
        loaded = await store.load("r")
        assert loaded is not None
        assert loaded.model == "a\ufffdb"

    asked(ask)
