"""Each step is one transaction, done again where that is safe, within its bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from isthmus.errors import RequestRefused, StoreUnavailable
from isthmus.store.postgres.connect import Connection, Options
from isthmus.store.postgres.medium import Medium
from isthmus.store.postgres.pool import Again, Pool
from postgres import name_of, server


def with_pool(options: Options, question: Callable[[Pool], Awaitable[None]], **more: Any) -> None:
    async def ask() -> None:
        pool = Pool(Medium(options), connections=more.pop("connections", 2), **more)
        try:
            await question(pool)
        finally:
            await pool.aclose()

    asyncio.run(ask())


def put(connection: Connection, name: str = "one") -> bool:
    made = connection.execute("INSERT INTO secrets VALUES (%s, 'x') RETURNING 1", (name,))
    return made.fetchone() is not None


def names(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM secrets ORDER BY name")]


def test_what_fails_leaves_nothing_and_the_next_one_works(options: Options) -> None:
    def refuse(connection: Connection) -> None:
        put(connection)
        raise RequestRefused("no")

    async def ask(pool: Pool) -> None:
        with pytest.raises(RequestRefused):
            await pool.write(refuse)
        with pytest.raises(psycopg.errors.UndefinedTable):
            await pool.write(lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)"))
        assert await pool.read(names) == []
        assert await pool.write(put)
        assert await pool.read(names) == ["one"]

    with_pool(options, ask)


def test_all_statements_of_a_read_see_the_same_moment(options: Options) -> None:
    first, second = threading.Event(), threading.Event()

    def look_twice(connection: Connection) -> tuple[list[str], list[str]]:
        before = names(connection)
        first.set()
        assert second.wait(30)
        return before, names(connection)

    async def ask(pool: Pool) -> None:
        looking = asyncio.create_task(pool.read(look_twice))
        await asyncio.to_thread(first.wait, 30)
        await pool.write(put)
        second.set()
        assert await looking == ([], [])

    with_pool(options, ask)


def test_a_read_cannot_write(options: Options) -> None:
    async def ask(pool: Pool) -> None:
        with pytest.raises(StoreUnavailable, match="read-only transaction"):
            await pool.read(put)

    with_pool(options, ask)


def test_a_deadlock_is_nobodys_trouble(options: Options) -> None:
    together = threading.Barrier(2)

    def cross(mine: str, theirs: str) -> Callable[[Connection], int]:
        tries: list[int] = []

        def work(connection: Connection) -> int:
            tries.append(1)
            connection.execute(
                "UPDATE secrets SET value = value || %s WHERE name = %s RETURNING 1", (b"1", mine)
            ).fetchall()
            if len(tries) == 1:
                together.wait(30)
            connection.execute("UPDATE secrets SET value = value || %s WHERE name = %s", (b"1", theirs))
            return len(tries)

        return work

    async def ask(pool: Pool) -> None:
        for name in ("a", "b"):
            await pool.write(lambda connection, name=name: put(connection, name))
        tries = await asyncio.gather(pool.write(cross("a", "b")), pool.write(cross("b", "a")))
        assert sum(tries) >= 3, "one of them began again"
        values = await pool.read(lambda connection: connection.execute("SELECT value FROM secrets").fetchall())
        assert values == [(b"x11",), (b"x11",)]

    with_pool(options, ask)


def test_what_is_not_so_any_more_is_looked_at_again(options: Options) -> None:
    tries: list[int] = []

    def twice(connection: Connection) -> bool:
        tries.append(1)
        put(connection)
        if len(tries) < 3:
            raise Again
        return True

    async def ask(pool: Pool) -> None:
        assert await pool.write(twice)
        assert len(tries) == 3
        assert await pool.read(names) == ["one"]

    with_pool(options, ask)


def test_a_connection_that_was_cut_is_replaced_and_nobody_notices(options: Options) -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"

    async def ask(pool: Pool) -> None:
        await pool.write(put)
        server().execute(cut.format(name_of(options.address.url)))
        assert await pool.read(names) == ["one"]
        server().execute(cut.format(name_of(options.address.url)))
        assert await pool.write(lambda connection: put(connection, "two"))

        def cut_in_the_middle(connection: Connection) -> bool:
            put(connection, "three")
            if not cuts:
                cuts.append(1)
                server().execute(cut.format(name_of(options.address.url)))
            connection.execute("SELECT 1").fetchone()
            return True

        cuts: list[int] = []
        assert await pool.write(cut_in_the_middle)
        assert await pool.read(names) == ["one", "three", "two"]

    with_pool(options, ask, connections=1)


def test_what_asks_for_no_answer_is_not_lost_on_a_connection_that_died_long_ago(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name_of(options.address.url)}'"
    monkeypatch.setattr("isthmus.store.postgres.pool._IDLE", 0.0)

    async def ask(pool: Pool) -> None:
        await pool.write(put)
        server().execute(cut)
        await pool.write(lambda connection: connection.execute("INSERT INTO secrets VALUES ('two', 'x')"))
        assert await pool.read(names) == ["one", "two"]

    with_pool(options, ask, connections=1)


def test_of_a_step_whose_end_got_lost_nobody_says_that_it_was_done(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name_of(options.address.url)}'"
    ended: list[int] = []

    async def ask(pool: Pool) -> None:
        await pool.write(put)
        own: Connection = next(iter(pool._open))
        execute = own.execute

        def cut_at_the_end(query: Any, *given: Any, **named: Any) -> Any:
            if query == "COMMIT":
                ended.append(1)
                server().execute(cut)
            return execute(query, *given, **named)

        monkeypatch.setattr(own, "execute", cut_at_the_end)
        with pytest.raises(StoreUnavailable):
            await pool.write(lambda connection: put(connection, "two"))
        assert ended == [1], "it is not tried again: it may have been done"

    with_pool(options, ask, connections=1)


def test_a_server_that_is_away_is_waited_for_so_long_and_no_longer(options: Options) -> None:
    async def ask(pool: Pool) -> None:
        with pytest.raises(StoreUnavailable, match="can be reached"):
            await pool.write(put)

    away = replace(options.address, url="postgresql://127.0.0.1:9/x")
    with_pool(replace(options, address=away, connect_timeout=0.05), ask)


def test_a_statement_that_takes_too_long_is_ended(options: Options) -> None:
    async def ask(pool: Pool) -> None:
        with pytest.raises(StoreUnavailable, match=r"raise `store\.statement_timeout`"):
            await pool.read(lambda connection: connection.execute("SELECT pg_sleep(20)").fetchone())
        assert await pool.write(put)

    with_pool(replace(options, statement_timeout=0.3), ask)


def test_as_many_are_at_work_as_there_are_connections_and_the_others_wait(options: Options) -> None:
    inside, most, go_on = [0], [0], threading.Event()

    def work(connection: Connection) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        assert go_on.wait(30)
        inside[0] -= 1

    async def ask(pool: Pool) -> None:
        asked = [asyncio.create_task(pool.read(work)) for _ in range(7)]
        while inside[0] < 2 or pool.waiting < 4:  # noqa: ASYNC110  other threads' doing
            await asyncio.sleep(0.005)
        assert pool.waiting == 4, "the queue has its bound; the rest waits on the loop"
        go_on.set()
        await asyncio.gather(*asked)
        assert most == [2]
        assert len(pool._open) == 2

    with_pool(options, ask, connections=2, queue_size=4)


def test_who_is_cancelled_gives_up_the_answer_not_the_write(options: Options) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> bool:
        started.set()
        assert go_on.wait(30)
        return put(connection)

    async def ask() -> None:
        pool = Pool(Medium(options), connections=1)
        one = asyncio.create_task(pool.write(slow))
        two = asyncio.create_task(pool.write(lambda connection: put(connection, "two")))
        await asyncio.to_thread(started.wait, 30)
        one.cancel()
        two.cancel()
        await asyncio.wait([one, two])
        go_on.set()
        await pool.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await pool.read(names)
        again = Pool(Medium(options), connections=1)
        assert await again.read(names) == ["one", "two"]
        await again.aclose()

    asyncio.run(ask())


def test_of_what_changed_nothing_nobody_is_told(options: Options) -> None:
    told: list[int] = []

    async def ask(pool: Pool) -> None:
        for nothing in (False, 0, []):
            await pool.write(lambda connection, nothing=nothing: nothing)
        await pool.read(names)
        assert told == []
        await pool.write(put)
        await pool.write(lambda connection: None)
        assert told == [1, 1]

    with_pool(options, ask, changed=lambda: told.append(1))


def test_reads_and_writes_are_timed(options: Options) -> None:
    heard: list[str] = []

    async def ask(pool: Pool) -> None:
        await pool.write(put)
        await pool.read(names)
        assert heard == ["write", "read"]

    with_pool(options, ask, timed=lambda kind, seconds: heard.append(kind))
