"""Leases by the database's own clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.leases import as_held
from isthmus.store.postgres.store import PostgresStore
from stored import turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_a_lease_ends_by_the_clock_of_the_database(asked: Asked, connection: Connection) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        assert await one.claim("run:r", holder="a", seconds=1000)
        assert not await two.claim("run:r", holder="b", seconds=1000)
        left = connection.execute("SELECT until - extract(epoch FROM clock_timestamp())::float8 FROM leases").fetchone()
        assert left is not None
        assert 900 < left[0] <= 1000
        connection.execute("UPDATE leases SET until = extract(epoch FROM clock_timestamp())::float8 - 0.001")
        assert await two.claim("run:r", holder="b", seconds=1000)
        assert not (await one.renew("a", seconds=10)).names

    asked(ask)


def test_who_lost_a_response_at_the_same_moment_does_not_write_it(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        for number in range(15):
            id = f"r{number}"
            await one.save(turn(id, status="in_progress"))
            saved, claimed = await asyncio.gather(
                one.save(turn(id), holder="a"), two.claim(f"run:{id}", holder="b", seconds=1000)
            )
            assert claimed
            seen = await two.load(id)
            assert seen is not None
            assert (seen.status == "completed") == saved, "what was saved before the claim is seen after it"
            assert await two.save(turn(id, status="failed"), holder="b") == (not saved)

    asked(ask)


def test_words_come_with_what_is_held() -> None:
    held = as_held([("ann", "run:r", ["cancel", "delete"]), ("ann", "run:s", [])])
    assert held.names == {("ann", "run:r"), ("ann", "run:s")}
    assert [(signal.name, signal.word) for signal in held.signals] == [("run:r", "cancel"), ("run:r", "delete")]
