"""Traces in PostgreSQL: shared by replicas, and there again when the server is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from isthmus.errors import StoreUnavailable
from isthmus.ports.traces import TracePage
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options
from isthmus.store.traces.postgres import PostgresTraces
from postgres import database_of
from traced import keep_in, traced


def ids(page: TracePage) -> list[str]:
    return [summary.id.removeprefix("req_") for summary in page.traces]


async def test_replicas_share_them(tmp_path: Path) -> None:
    options = Options(Address(database_of(tmp_path)))
    first, second = PostgresTraces(options), PostgresTraces(options)
    keep_in(first, [traced("1")])
    keep_in(second, [traced("2", provider="other")])
    keep_in(first, [traced("3", provider="other")])
    assert ids(await first.list("local")) == ids(await second.list("local")) == ["3", "2", "1"]
    assert [total.requests for total in await second.totals("local", by="provider")] == [2, 1]
    first.close()
    second.close()


async def test_whoever_follows_misses_none_while_replicas_write(tmp_path: Path) -> None:
    options = Options(Address(database_of(tmp_path)))
    replicas = [PostgresTraces(options) for _ in range(3)]
    seen: list[int] = []

    async def write(number: int) -> None:
        for each in range(20):
            made = [traced(f"{number}.{each}.{more}", provider=f"p{each}") for more in range(3)]
            await asyncio.to_thread(keep_in, replicas[number], made)

    writing = asyncio.gather(*(write(number) for number in range(2)))
    while len(seen) < 120:
        done = writing.done()
        page = await replicas[2].list(None, after=seen[-1] if seen else None, order="asc", limit=1000)
        seen += [summary.seq for summary in page.traces]
        assert page.traces or not done, f"only {len(seen)}"
    await writing
    assert seen == list(range(1, 121))
    for replica in replicas:
        replica.close()


async def test_a_connection_that_broke_is_made_anew(tmp_path: Path) -> None:
    url = database_of(tmp_path)
    store = PostgresTraces(Options(Address(url)))
    keep_in(store, [traced("1")])
    assert ids(await store.list("local")) == ["1"]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    keep_in(store, [traced("2")])
    assert ids(await store.list("local")) == ["2", "1"]
    store.close()


async def test_a_server_that_is_away_is_said_to_be() -> None:
    store = PostgresTraces(Options(Address("postgresql://me:hidden@127.0.0.1:1/db")))
    with pytest.raises(StoreUnavailable, match=r"the traces in .* cannot be used") as caught:
        keep_in(store, [traced("1")])
    assert "hidden" not in str(caught.value)
    with pytest.raises(StoreUnavailable):
        await store.list("local")
    store.close()
