"""A group of traces is written whole or not at all, and forgetting takes its time."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest

from isthmus.ports.packed import pack_all
from isthmus.store.traces import writes
from isthmus.store.traces.sqlite import SqliteTraces
from isthmus.store.traces.writes import Memory, keep, prune
from traced import keep_in, traced


async def test_a_group_that_fails_leaves_nothing_behind_and_the_next_one_is_kept() -> None:
    store = SqliteTraces()
    keep_in(store, [traced("1")])
    broken = msgspec.structs.replace(traced("3"), usage={"x": object()})
    with pytest.raises(TypeError):
        keep_in(store, [traced("2", provider="new"), broken])
    assert [each.id for each in (await store.list(None)).traces] == ["req_1"]
    assert [each.group for each in await store.totals(None, by="provider")] == ["main"]
    keep_in(store, [traced("4", provider="new")])
    assert [each.id for each in (await store.list(None)).traces] == ["req_4", "req_1"]
    store.close()


async def test_numbers_are_never_given_twice_also_when_all_went() -> None:
    store = SqliteTraces()
    keep_in(store, [traced("1"), traced("2")])
    while store.prune(older_than=5_000.0):
        pass
    keep_in(store, [traced("3", 6_000.0)])
    (only,) = (await store.list(None)).traces
    assert only.seq == 3
    store.close()


def test_the_thread_of_a_turn_long_ago_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "_THREADS", 2)
    memory, store = Memory(), SqliteTraces()
    keep_in(store, [])
    connection = store._writer
    assert connection is not None
    keep(connection, memory, pack_all([traced("1", thread="root"), *(traced(f"x{number}") for number in range(5))]))
    assert ("local", "resp_1") not in memory.threads
    assert len(memory.threads) == 2
    keep(connection, memory, pack_all([traced("2", previous="resp_1", thread="own")]))
    assert memory.threads["local", "resp_2"] == "root"
    store.close()


def test_a_step_of_forgetting_is_bounded_and_gives_pages_back(tmp_path: object) -> None:
    store = SqliteTraces()
    keep_in(store, [traced(str(number), 1_000.0 + number) for number in range(1_000)])
    connection = store._writer
    assert isinstance(connection, sqlite3.Connection)
    assert prune(connection, 100_000.0, None, 300) == 300
    assert connection.execute("SELECT count(*), min(seq) FROM traces").fetchone() == (700, 301)
    while prune(connection, 100_000.0, None, 300):
        pass
    left = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("traces", "totals")]
    assert left == [0, 0]
    store.close()
