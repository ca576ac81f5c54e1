from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from isthmus.errors import ConfigError, StoreUnavailable
from isthmus.store.sqlite.connect import Trouble
from isthmus.store.sqlite.store import SqliteStore
from stored import turn


def test_concurrent_saves_share_commits(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await asyncio.gather(*(store.save(turn(f"r{number}")) for number in range(1000)))
        assert store.writer.operations == 1000
        assert store.writer.commits <= 50
        await store.aclose()

    asyncio.run(ask())


def test_what_waits_while_the_writer_is_busy_becomes_one_commit(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        busy = threading.Event()
        blocked = asyncio.ensure_future(store.writer.run(lambda connection: busy.wait(60)))
        await asyncio.sleep(0)
        saves = [asyncio.ensure_future(store.save(turn(f"r{number}"))) for number in range(100)]
        await asyncio.sleep(0)
        busy.set()
        await asyncio.gather(blocked, *saves)
        assert store.writer.commits <= 2
        await store.aclose()

    asyncio.run(ask())


def test_a_save_returns_only_after_another_connection_can_see_it(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")

        async def save_and_look(number: int) -> int:
            await store.save(turn(f"r{number}"))
            other = sqlite3.connect(tmp_path / "store.db")
            (seen,) = other.execute("SELECT count(*) FROM responses WHERE id = ?", (f"r{number}",)).fetchone()
            other.close()
            return int(seen)

        assert await asyncio.gather(*(save_and_look(number) for number in range(100))) == [1] * 100
        await store.aclose()

    asyncio.run(ask())


def test_one_bad_operation_in_a_group_fails_alone(tmp_path: Path) -> None:
    def half_then_fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO streams VALUES (99, 0, 0, 0)")
        connection.execute("INSERT INTO streams VALUES (99, 0, 0, 0)")

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        results = await asyncio.gather(
            *(store.save(turn(f"r{number}")) for number in range(5)),
            store.writer.run(half_then_fail),
            store.save(turn("r0", owner="mallory")),
            *(store.save(turn(f"r{number}")) for number in range(5, 10)),
            return_exceptions=True,
        )
        assert results[:5] + results[7:] == [True] * 10
        assert isinstance(results[5], ConfigError)
        assert isinstance(results[6], ValueError)
        assert await store.readers.run(lambda c: c.execute("SELECT count(*) FROM streams").fetchone()) == (0,)
        assert (await store.stats()).responses == 10
        await store.aclose()

    asyncio.run(ask())


def test_the_queue_is_bounded_and_everybody_gets_through(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", queue_size=4)
        busy = threading.Event()
        blocked = asyncio.ensure_future(store.writer.run(lambda connection: busy.wait(60)))
        saves = [asyncio.ensure_future(store.save(turn(f"r{number}"))) for number in range(50)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert store.writer._queue.qsize() <= 4
        busy.set()
        await asyncio.gather(blocked, *saves)
        assert (await store.stats()).responses == 50
        await store.aclose()

    asyncio.run(ask())


def test_closing_flushes_everything_that_was_asked_before(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", queue_size=4)
        saves = [asyncio.ensure_future(store.save(turn(f"r{number}"))) for number in range(200)]
        await asyncio.sleep(0)
        await store.aclose()
        assert await asyncio.gather(*saves) == [True] * 200
        for late in (store.save(turn("late")), store.load("r1")):
            with pytest.raises(RuntimeError, match="closed"):
                await late
        again = SqliteStore(tmp_path / "store.db")
        assert (await again.stats()).responses == 200
        await again.aclose()

    asyncio.run(ask())


def test_closing_folds_the_wal_into_the_file(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("r1"))
        await store.load("r1")
        await store.aclose()

    asyncio.run(ask())
    assert [path.name for path in tmp_path.iterdir()] == ["store.db"]


def test_a_cancelled_caller_gives_up_the_answer_not_the_write(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", queue_size=2)
        busy = threading.Event()
        blocked = asyncio.ensure_future(store.writer.run(lambda connection: busy.wait(60)))
        await asyncio.sleep(0)
        queued = asyncio.ensure_future(store.save(turn("queued")))
        await asyncio.sleep(0)
        waiting = asyncio.ensure_future(store.save(turn("waiting for room")))
        await asyncio.sleep(0)
        queued.cancel()
        waiting.cancel()
        await asyncio.wait([queued, waiting])
        busy.set()
        await blocked
        assert await store.save(turn("after"))
        assert await store.load("queued") is not None
        assert await store.load("waiting for room") is None
        await store.aclose()

    asyncio.run(ask())


def test_whatever_goes_wrong_while_it_looks_at_the_file_it_looks_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", retry_seconds=0.01)
        sound, failures = store.writer._probe, iter([OSError("odd"), AssertionError("odder")])

        def probe(connection: sqlite3.Connection) -> None:
            for failure in failures:
                raise failure
            sound(connection)

        store.writer._probe = probe
        store._medium.report(Trouble("it seems so", "look"))
        with pytest.raises(StoreUnavailable):
            await store.check()
        while store._medium.troubled:  # the suite's own deadline ends it
            await store.watch(0)
        assert await store.save(turn("after"))
        await store.aclose()

    asyncio.run(ask())
    assert caplog.text.count("store.look.failed") == 2


def test_every_read_and_write_is_timed_with_its_wait_also_one_that_fails(tmp_path: Path) -> None:
    heard: list[tuple[str, float]] = []

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", timed=lambda operation, seconds: heard.append((operation, seconds)))
        busy = threading.Event()
        blocked = asyncio.ensure_future(store.writer.run(lambda connection: busy.wait(60)))
        await asyncio.sleep(0)
        saving = asyncio.ensure_future(store.save(turn("r1")))
        await asyncio.sleep(0)
        assert store.writer.waiting == 2
        busy.set()
        await asyncio.gather(blocked, saving)
        assert store.writer.waiting == 0
        await store.load("r1")
        with pytest.raises(ZeroDivisionError):
            await store.writer.run(lambda connection: 1 / 0)
        await store.aclose()

    asyncio.run(ask())
    assert [operation for operation, _ in heard] == ["write", "write", "read", "write"]
    assert all(seconds > 0 for _, seconds in heard)
