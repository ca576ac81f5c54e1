"""The SQLite store as a whole: what its parts promise one by one it keeps together, in pages and steps."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from every_store import Clock
from isthmus.errors import ConfigError
from isthmus.ports import EventBatch, Store
from isthmus.store.sqlite import medium, prune, reads
from isthmus.store.sqlite.migrations import MIGRATIONS
from isthmus.store.sqlite.store import SqliteStore
from stored import turn

Question = Callable[[SqliteStore], Awaitable[Any]]


def ask(folder: Path, question: Question, **limits: Any) -> Any:
    async def main() -> Any:
        store = SqliteStore(folder / "store.db", **limits)
        try:
            return await question(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


def test_it_speaks_the_whole_contract() -> None:
    contract = {name for name in vars(Store) if not name.startswith("_")}
    assert contract <= set(vars(SqliteStore))


def test_what_cannot_be_opened_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a newer version is refused; nobody holds on to it."""
    path, opened = tmp_path / "store.db", []
    connect = medium.connect_writer
    monkeypatch.setattr(medium, "connect_writer", lambda *given: opened.append(connect(*given)) or opened[-1])
    ask(tmp_path, lambda store: store.save(turn("r1")))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO isthmus_migrations VALUES ('9999_later', '')")
        connection.commit()
    with pytest.raises(ConfigError, match="newer Isthmus"):
        SqliteStore(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[-1].execute("SELECT 1")
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        connection.execute("DELETE FROM isthmus_migrations WHERE name = '9999_later'")
        connection.commit()
    assert ask(tmp_path, lambda store: store.load("r1")) == turn("r1")
    assert [name for name, _ in MIGRATIONS][-1] != "9999_later"


def test_a_save_and_its_events_are_one_step(tmp_path: Path) -> None:
    async def question(store: SqliteStore) -> None:
        await store.save(turn("r1", status="in_progress"), events=EventBatch(0, (b"0",)))
        with pytest.raises(ValueError, match="expected 1"):
            await store.save(turn("r1"), events=EventBatch(9, (b"9",)))
        assert await store.load("r1") == turn("r1", status="in_progress")
        assert await store.save(turn("r1"), events=EventBatch(1, (b"1",)))
        assert await store.events("r1") == [b"0", b"1"]

    ask(tmp_path, question)


def test_whether_it_may_be_written_is_asked_in_the_step_that_writes(tmp_path: Path) -> None:
    """Of many who want to finish it at once, the first does, whoever it is."""

    async def question(store: SqliteStore) -> None:
        await store.save(turn("r1", status="in_progress"))
        ends = [store.save(turn("r1", by=str(number)), holder=f"h{number}") for number in range(20)]
        assert sum(await asyncio.gather(*ends)) == 1

    ask(tmp_path, question)


def test_its_clock_is_asked_inside_the_step(tmp_path: Path) -> None:
    """A caller that waited long for its turn must not bring an old time along."""
    clock = Clock()

    async def question(store: SqliteStore) -> None:
        busy, go = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def wait(connection: sqlite3.Connection) -> None:
            loop.call_soon_threadsafe(busy.set)
            go.wait(60)

        blocked = asyncio.ensure_future(store.writer.run(wait))
        await busy.wait()
        claiming = asyncio.ensure_future(store.claim("run:r1", holder="a", seconds=10))
        await asyncio.sleep(0)
        clock.at += 100
        go.set()
        await asyncio.gather(blocked, claiming)
        clock.at += 9
        assert not await store.claim("run:r1", holder="b", seconds=10)

    ask(tmp_path, question, now=clock)


@pytest.mark.parametrize("id", ["\ud800", "r1\x00", "x" * 100_000])
def test_an_id_that_is_no_text_is_simply_unknown(tmp_path: Path, id: str) -> None:
    async def question(store: SqliteStore) -> None:
        await store.save(turn("r1"))
        assert await store.load(id) is None
        assert not await store.delete(id)
        assert not await store.signal(id, "cancel")
        assert await store.items([id]) == {}
        assert await store.lessons("one", id) == []

    ask(tmp_path, question)


@pytest.mark.parametrize("number", [2**62, 2**63, 10**30])
def test_numbers_beyond_the_files_own_are_bounded(tmp_path: Path, number: int) -> None:
    async def question(store: SqliteStore) -> None:
        await store.save(turn("r1", status="in_progress"), events=EventBatch(0, (b"0",)))
        assert await store.events("r1", after=number) == []
        assert await store.events("r1", after=-number) == [b"0"]
        assert len(await store.chain("r1", max_depth=number)) == 1

    ask(tmp_path, question)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 130])
def test_an_export_in_pages_is_whole(tmp_path: Path, count: int) -> None:
    async def question(store: SqliteStore) -> None:
        await asyncio.gather(*(store.save(turn(f"r{number}")) for number in range(count)))
        lines = [msgspec.json.decode(line)["id"] async for line in store.export()]
        assert sorted(lines) == sorted(f"r{number}" for number in range(count))

    ask(tmp_path, question)


def test_an_export_goes_on_while_others_write(tmp_path: Path) -> None:
    async def question(store: SqliteStore) -> None:
        for number in range(70):
            await store.save(turn(f"r{number}"))
        seen: list[str] = []
        async for line in store.export():
            seen.append(msgspec.json.decode(line)["id"])
            if len(seen) == 10:
                await store.delete("r69")
                await store.save(turn("r70"))
        assert seen == [f"r{number}" for number in range(71) if number != 69]

    ask(tmp_path, question)


def test_pruning_in_steps_lets_others_in_and_takes_all_that_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "_STEP", 3)

    async def question(store: SqliteStore) -> None:
        for number in range(20):
            await store.save(turn(f"r{number}", at=float(number)))
        before = store.writer.operations
        pruned = await store.prune(older_than=15.0)
        assert pruned.responses == 15
        assert store.writer.operations - before >= 5
        assert [bool(await store.load(f"r{number}")) for number in range(20)] == [False] * 15 + [True] * 5

    ask(tmp_path, question)


def test_a_turn_that_is_continued_while_it_is_pruned_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_ends = reads.find_ends

    async def question(store: SqliteStore) -> None:
        loop = asyncio.get_running_loop()

        def find_and_continue(*given: Any, **named: Any) -> Any:
            found = find_ends(*given, **named)  # on a reader's thread: the loop is free to save
            asyncio.run_coroutine_threadsafe(store.save(turn("late", "old", at=99.0)), loop).result(60)
            return found

        monkeypatch.setattr(reads, "find_ends", find_and_continue)
        await store.save(turn("old", at=1.0))
        assert (await store.prune(older_than=50.0)).responses == 0
        assert [each.id for each in await store.chain("late")] == ["old", "late"]

    ask(tmp_path, question)


def test_pruning_with_nothing_to_prune_sweeps_leases_all_the_same(tmp_path: Path) -> None:
    clock = Clock()

    async def question(store: SqliteStore) -> int:
        await store.claim("run:r1", holder="a", seconds=10)
        clock.at += 10
        assert (await store.prune()).responses == 0
        found = await store.readers.run(lambda connection: connection.execute("SELECT count(*) FROM leases").fetchone())
        return int(found[0])

    assert ask(tmp_path, question, now=clock) == 0


def test_a_closed_store_says_so_and_closing_it_again_does_nothing(tmp_path: Path) -> None:
    async def question(store: SqliteStore) -> None:
        await store.save(turn("r1"))
        await store.aclose()
        await store.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await store.load("r1")
        with pytest.raises(RuntimeError, match="closed"):
            await store.save(turn("r2"))

    ask(tmp_path, question)


def test_pruning_gives_the_space_back_to_the_disk(tmp_path: Path) -> None:
    noise = random.Random(1)

    async def fill(store: SqliteStore) -> None:
        await asyncio.gather(*(store.save(turn(f"r{n}", noise=noise.randbytes(20_000).hex())) for n in range(100)))

    def size() -> int:
        return (tmp_path / "store.db").stat().st_size

    store = SqliteStore(tmp_path / "store.db")
    with asyncio.Runner() as runner:
        runner.run(fill(store))
        runner.run(store.aclose())
        full = size()
        store = SqliteStore(tmp_path / "store.db")
        runner.run(store.prune(older_than=1.0))
        runner.run(store.aclose())
    assert size() < full // 5


def test_orphans_that_are_damaged_hide_none_behind_them(tmp_path: Path) -> None:
    async def save(store: SqliteStore) -> None:
        for number in range(30):
            await store.save(turn(f"r{number}", status="queued"))

    ask(tmp_path, save)
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("UPDATE responses SET memo = x'00' WHERE id NOT IN ('r17', 'r29')")
    found = ask(tmp_path, lambda store: store.expired(most=5))
    assert [record.id for record in found] == ["r17", "r29"]
