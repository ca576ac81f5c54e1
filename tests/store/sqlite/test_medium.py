"""Real files, and what people and systems do to them."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.store.sqlite.store import SqliteStore
from stored import turn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")


def on_a_store(ask: Callable[[SqliteStore, Path], Coroutine[Any, Any, None]], path: Path) -> None:
    async def run() -> None:
        store = SqliteStore(path, retry_seconds=0.01)
        try:
            await ask(store, path)
        finally:
            await store.aclose()

    asyncio.run(run())


async def until_it_works(work: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(60):
        while True:
            try:
                return await work()
            except StoreUnavailable:
                await asyncio.sleep(0.01)


def put_empty(path: Path) -> None:
    path.touch()


def there(path: Path) -> bool:
    return path.exists()


def ids_in(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {id for (id,) in connection.execute("SELECT id FROM responses")}


def test_a_deleted_file_fails_saves_reads_and_the_check_and_is_not_made_anew(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, path: Path) -> None:
        await store.save(turn("r1"))
        await store.load("r1")
        os.unlink(path)
        for work in (store.save(turn("r2")), store.load("r1"), store.check(), store.stats(), store.watch(0)):
            with pytest.raises(StoreUnavailable, match=f"`{path}` cannot be used .it was deleted or moved away"):
                await work
        assert not there(path)

    on_a_store(ask, tmp_path / "store.db")


def test_a_file_that_is_put_back_has_lost_nothing(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, path: Path) -> None:
        await store.save(turn("r1"))
        os.rename(path, tmp_path / "away.db")
        with pytest.raises(StoreUnavailable):
            await store.save(turn("r2"))
        os.rename(tmp_path / "away.db", path)
        await until_it_works(store.check)
        await store.save(turn("r3"))
        assert await store.load("r1") == turn("r1")

    on_a_store(ask, tmp_path / "store.db")
    assert {"r1", "r3"} <= ids_in(tmp_path / "store.db")


def test_a_file_that_was_moved_away_takes_with_it_what_was_only_in_its_log(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, path: Path) -> None:
        for number in range(20):
            await store.save(turn(f"r{number}"))
        os.rename(path, tmp_path / "away.db")
        put_empty(path)
        with pytest.raises(StoreUnavailable):
            await store.check()
        await until_it_works(store.check)
        await store.save(turn("new"))

    on_a_store(ask, tmp_path / "store.db")
    assert ids_in(tmp_path / "away.db") == {f"r{number}" for number in range(20)}
    assert ids_in(tmp_path / "store.db") == {"new"}


@pytest.mark.parametrize("noticed", [False, True])
def test_the_log_of_a_replaced_file_is_not_read_into_its_successor(noticed: bool, tmp_path: Path) -> None:
    """Not by this process, and not by the next: SQLite would take the pages of one for those of the other."""
    other = tmp_path / "other.db"

    async def make(store: SqliteStore, path: Path) -> None:
        await store.save(turn("of another store", note="n" * 9000))

    async def ask(store: SqliteStore, path: Path) -> None:
        for number in range(50):
            await store.save(turn(f"r{number}"))
        os.replace(other, path)
        if noticed:
            await until_it_works(store.check)
            assert await store.load("of another store") == turn("of another store", note="n" * 9000)

    on_a_store(make, other)
    on_a_store(ask, tmp_path / "store.db")
    assert ids_in(tmp_path / "store.db") == {"of another store"}


def test_a_log_that_was_deleted_is_brought_into_the_file(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, path: Path) -> None:
        for number in range(20):
            await store.save(turn(f"r{number}"))
        os.unlink(f"{path}-wal")
        with pytest.raises(StoreUnavailable, match="write-ahead log"):
            await store.check()
        await until_it_works(store.check)
        await store.save(turn("later"))

    on_a_store(ask, tmp_path / "store.db")
    assert ids_in(tmp_path / "store.db") == {*(f"r{number}" for number in range(20)), "later"}


def test_what_is_no_store_is_not_taken_and_a_store_behind_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def make(store: SqliteStore, path: Path) -> None:
        await store.save(turn("kept"))

    async def ask(store: SqliteStore, path: Path) -> None:
        (tmp_path / "notes").write_text("my notes " * 1000)
        os.replace(tmp_path / "notes", path)
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match=r"not an SQLite database|another file was put"):
                await store.save(turn("r1"))
        assert there(path)
        os.replace(tmp_path / "kept.db", path)
        await until_it_works(store.check)
        assert await store.load("kept") == turn("kept")

    on_a_store(make, tmp_path / "kept.db")
    with caplog.at_level(logging.INFO, "isthmus.store"):
        on_a_store(ask, tmp_path / "store.db")
    told = [record.getMessage().split()[0] for record in caplog.records]
    assert told[0] == "store.unavailable"
    assert told[-2:] == ["store.reopened", "store.available"]
    assert len(told) < 8, "each change is told once, not each time that it is met"


def test_other_processes_notice_by_themselves(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, path: Path) -> None:
        other = SqliteStore(path, retry_seconds=0.01)
        await store.save(turn("r1"))
        assert await other.load("r1") == turn("r1")
        os.unlink(path)
        put_empty(path)
        await until_it_works(lambda: store.save(turn("r2")))
        await until_it_works(lambda: other.save(turn("r3")))
        assert await until_it_works(lambda: store.load("r3")) == turn("r3")
        assert await until_it_works(lambda: other.load("r2")) == turn("r2")
        await other.aclose()

    on_a_store(ask, tmp_path / "store.db")
    assert ids_in(tmp_path / "store.db") == {"r2", "r3"}


def test_a_follower_is_woken_by_another_file(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, path: Path) -> None:
        mark = await store.watch(0)
        os.unlink(path)
        put_empty(path)
        with pytest.raises(StoreUnavailable):
            await store.check()
        assert await until_it_works(lambda: store.watch(30, since=mark)) != mark

    on_a_store(ask, tmp_path / "store.db")


def test_a_lock_that_stays_refuses_new_work_until_it_is_gone(tmp_path: Path) -> None:
    async def ask() -> None:
        path = tmp_path / "store.db"
        store = SqliteStore(path, busy_seconds=0.05, retry_seconds=0.01)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="another process is holding it"):
                await store.save(turn("r1"))
            with pytest.raises(StoreUnavailable, match="another process is holding it"):
                await store.check()
            other.execute("ROLLBACK")
        await until_it_works(store.check)
        assert await store.save(turn("r1"))
        await store.aclose()

    asyncio.run(ask())


READ_ONLY = """
import asyncio, os, sys
from pathlib import Path
from isthmus.errors import StoreUnavailable
from isthmus.store.sqlite.store import SqliteStore
from stored import turn
from store.sqlite.test_medium import until_it_works
import encodings.idna, concurrent.futures.thread  # what is loaded later cannot be read any more

path = Path(sys.argv[1])
if os.getuid() == 0:  # to whom nothing is read-only
    os.chown(path.parent, 65534, 65534)
    os.setgid(65534)
    os.setuid(65534)

async def main():
    store = SqliteStore(path, retry_seconds=0.01)
    await store.save(turn("r1"))
    os.chmod(path, 0o400)
    for work in (store.save(turn("r2")), store.check()):
        try:
            await work
        except StoreUnavailable as error:
            print(error)
    print(await store.load("r1") == turn("r1"))
    os.chmod(path, 0o600)
    await until_it_works(store.check)
    print(await store.save(turn("r2")))
    await store.aclose()

asyncio.run(main())
"""


def test_a_file_that_was_made_read_only_is_left_alone_until_it_may_be_written(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="isthmus-", dir="/tmp"))  # pytest's own folders are closed to others
    try:
        tests = Path(__file__).parents[2]
        sources = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(folder / "store.db")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": sources},
            timeout=120,
            check=False,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told = done.stdout.splitlines()
    assert told[2:] == ["True", "True"], done.stdout + done.stderr
    assert all("is read-only): make the file and its folder writable" in line for line in told[:2])
