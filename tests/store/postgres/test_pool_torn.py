"""A connection that breaks at the very moment of a commit: what is told is what is so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from isthmus.errors import StoreUnavailable
from isthmus.ports import EventBatch
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Connection, Options
from isthmus.store.postgres.store import PostgresStore
from postgres import database_of
from stored import turn


def tear(store: PostgresStore, *, after: bool, times: int = 1) -> Callable[[], int]:
    """The next connections break at the end of their first transaction, when the server has done it or before; how
    often that was."""
    connect, torn = store._medium.connect, 0

    def make() -> Connection:
        connection = connect()
        execute = connection.execute

        def watched(query: Any, *given: Any, **named: Any) -> Any:
            nonlocal torn
            if query == "COMMIT" and torn < times:
                torn += 1
                if after:
                    execute(query)
                    pipeline = connection._pipeline
                    assert pipeline is not None
                    pipeline.sync()
                connection.pgconn.finish()
                raise psycopg.OperationalError("the connection is torn")
            return execute(query, *given, **named)

        connection.execute = watched  # type: ignore[method-assign]
        return connection

    store._medium.connect = make  # type: ignore[method-assign]
    return lambda: torn


@pytest.mark.parametrize("after", [True, False], ids=["done", "not done"])
async def test_a_save_whose_answer_was_torn_is_known_to_be_done_or_is_done_again(tmp_path: Path, after: bool) -> None:
    store = PostgresStore(Options(Address(database_of(tmp_path))))
    torn = tear(store, after=after)
    assert await store.save(turn("resp_1"))
    assert torn() == 1
    found = await store.load("resp_1")
    assert found is not None
    assert (await store.stats()).responses == 1
    await store.aclose()


@pytest.mark.parametrize("after", [True, False], ids=["done", "not done"])
async def test_so_are_all_other_changes_of_a_response(tmp_path: Path, after: bool) -> None:
    store = PostgresStore(Options(Address(database_of(tmp_path))), connections=1)
    await store.save(turn("resp_1", status="in_progress"), events=EventBatch(0, (b"{}",)))
    changes: list[Callable[[], Awaitable[bool]]] = [
        lambda: store.append_events("resp_1", EventBatch(1, (b"{}", b"{}"))),
        lambda: store.update_status("resp_1", "failed", only_from=("in_progress",)),
        lambda: store.delete("resp_1"),
    ]
    for change in changes:
        torn = tear(store, after=after)
        for connection in store.pool._open:  # so that the next step makes a new one
            connection.close()
        assert await change()
        assert torn() == 1
    assert await store.load("resp_1") is None
    await store.aclose()


async def test_whoever_cannot_see_it_is_told_that_the_store_is_away(tmp_path: Path) -> None:
    store = PostgresStore(Options(Address(database_of(tmp_path))))
    torn = tear(store, after=True)
    with pytest.raises(StoreUnavailable):
        await store.claim("run:x", holder="one", seconds=60)
    assert torn() == 1
    await store.aclose()
