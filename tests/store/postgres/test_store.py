"""The store as a gateway has it: what it does when the server goes, and what it says of itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Connection, Options
from isthmus.store.postgres.store import PostgresStore
from postgres import empty_database, server
from stored import turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_a_restart_of_the_server_loses_nothing_and_needs_nobody(asked: Asked) -> None:
    async def ask(store: PostgresStore) -> None:
        saved: list[str] = []
        stop = asyncio.Event()

        async def save(name: str) -> None:
            number = 0
            while not stop.is_set():
                id, number = f"{name}_{number}", number + 1
                try:
                    await store.save(turn(id))
                except StoreUnavailable:
                    continue  # its end may have got lost
                saved.append(id)

        saving = [asyncio.create_task(save(f"s{number}")) for number in range(4)]
        while len(saved) < 20:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.to_thread(server().restart, "immediate")
        after = len(saved)
        async with asyncio.timeout(60):
            while len(saved) < after + 20:  # noqa: ASYNC110
                await asyncio.sleep(0)
        stop.set()
        await asyncio.gather(*saving)
        await store.check()
        missing = [id for id in saved if await store.load(id) is None]
        assert missing == []

    asked_durably(ask)


def asked_durably(question: Callable[[PostgresStore], Awaitable[None]]) -> None:
    """A server that is ended as by a crash keeps what waited for its disk."""

    async def main() -> None:
        store = PostgresStore(Options(Address(empty_database()), durability="power", connect_timeout=20.0))
        try:
            await question(store)
        finally:
            await store.aclose()

    asyncio.run(main())


def test_a_server_that_is_away_is_known_at_once_and_waited_for_by_what_is_under_way(options: Options) -> None:
    async def main() -> None:
        store = PostgresStore(replace(options, connect_timeout=60.0), retry_seconds=0.05)
        try:
            await store.save(turn("one"))
            await asyncio.to_thread(server().stop)
            try:
                async with asyncio.timeout(60):
                    while True:
                        try:
                            await store.check()
                        except StoreUnavailable:
                            break
                        await asyncio.sleep(0.005)
                loading = asyncio.create_task(store.load("one"))
                await asyncio.sleep(0.05)
                assert not loading.done()
            finally:
                await asyncio.to_thread(server().start)
            found = await loading
            assert found is not None
            await store.check()
        finally:
            await store.aclose()

    asyncio.run(main())


def test_without_a_server_there_is_no_start(options: Options) -> None:
    with pytest.raises(StoreUnavailable, match="check that the server runs"):
        PostgresStore(replace(options, address=Address("postgresql://ann:hush@127.0.0.1:9/x")))


def test_damaged_ones_are_named_once_in_the_log(
    asked: Asked, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.save(turn("broken"))
        await store.save(turn("sound"))
        connection.execute("UPDATE responses SET row_digest = 'x' WHERE id = 'broken'")
        with caplog.at_level(logging.ERROR, "isthmus.store"):
            for _ in range(2):
                assert len([line async for line in store.export()]) == 1
        assert [record.message.split()[0] for record in caplog.records] == ["store.damaged"]

    asked(ask)


def test_nothing_of_a_closed_store_stays_behind(options: Options, connection: Connection) -> None:
    async def main() -> None:
        store = PostgresStore(options)
        await asyncio.gather(*(store.save(turn(f"r{number}")) for number in range(20)))
        await store.aclose()
        await store.aclose()

    asyncio.run(main())
    count = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    for _ in range(1000):
        if connection.execute(count).fetchone() == (1,):
            return
    raise AssertionError("connections are left")
