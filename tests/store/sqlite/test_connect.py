from __future__ import annotations

import asyncio
import sqlite3
import stat
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from isthmus.errors import ConfigError, StoreDamaged, StoreUnavailable
from isthmus.store.copying.stores import back_up_store
from isthmus.store.open import examine_store
from isthmus.store.sqlite.store import SqliteStore
from stored import turn


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"needs the folder `{tmp_path / 'nowhere'}`"):
        SqliteStore(tmp_path / "nowhere" / "store.db")


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        SqliteStore(tmp_path)


def test_a_file_that_is_no_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes " * 1000)
    with pytest.raises(ConfigError, match="not an SQLite database"):
        SqliteStore(path)
    assert path.read_text() == "my notes " * 1000


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written") as refused:
        SqliteStore(tmp_path / ("x" * 300))
    assert refused.value.code == "store_unavailable"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_the_file_is_for_its_user_only(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("r1"))
        modes = modes_in(tmp_path)
        await store.aclose()
        assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)

    asyncio.run(ask())


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize(("durability", "level"), [("process", 1), ("power", 2)])
def test_durability_sets_how_far_a_commit_goes(durability: str, level: int, tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", durability=durability)  # type: ignore[arg-type]
        found = await store.writer.run(
            lambda connection: [
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
            ]
        )
        await store.aclose()
        assert found == [level, "wal"]

    asyncio.run(ask())


def test_what_may_be_taken_back_stays_in_memory_and_the_log_is_folded_in_large_steps(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")

        def look(connection: sqlite3.Connection) -> list[int]:
            return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("temp_store", "wal_autocheckpoint")]

        assert await store.writer.run(look) == [2, 4000]
        await store.aclose()

    asyncio.run(ask())


def test_a_damaged_file_says_so_and_does_not_take_the_process_down(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def fill() -> None:
        store = SqliteStore(path)
        await asyncio.gather(*(store.save(turn(f"r{number}", note="n" * 400)) for number in range(200)))
        await store.aclose()

    async def ask() -> None:
        store = SqliteStore(path)
        answers = await asyncio.gather(*(store.load(f"r{number}") for number in range(200)), return_exceptions=True)
        told = [answer for answer in answers if isinstance(answer, BaseException)]
        assert told
        assert {type(error) for error in told} == {StoreDamaged}
        for number, answer in enumerate(answers):
            assert isinstance(answer, StoreDamaged) or answer in (None, turn(f"r{number}", note="n" * 400))
        await store.aclose()

    asyncio.run(fill())
    content = bytearray(path.read_bytes())
    half = len(content) // 2
    content[half:] = b"\xff" * (len(content) - half)
    path.write_bytes(content)
    asyncio.run(ask())


def test_a_lock_held_by_another_process_fails_after_the_wait_and_then_recovers(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", busy_seconds=0.05)
        await store.save(turn("r1"))
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(ConfigError, match="another process is holding it") as failed:
                await store.save(turn("r2"))
            assert failed.value.code == "store_unavailable"
            assert await store.load("r1") is not None
            other.execute("ROLLBACK")
        assert await store.save(turn("r2"))
        assert await store.load("r2") is not None
        await store.aclose()

    asyncio.run(ask())


def test_a_full_disk_fails_the_save_and_later_ones_work(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        pages = await store.writer.run(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
        await store.writer.run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
        noise = [f"{number:06d}" for number in range(4000)]
        with pytest.raises(ConfigError, match="free some space"):
            await store.save(turn("r1", numbers=noise))
        assert await store.load("r1") is None
        await store.writer.run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())
        assert await store.save(turn("r1", numbers=noise))
        assert await store.load("r1") == turn("r1", numbers=noise)
        await store.aclose()

    asyncio.run(ask())


def spoil_schema(path: Path) -> None:
    """SQLite quotes what it cannot read there in its error, which is no text any more."""
    data = path.read_bytes()
    assert b"CREATE TABLE leases" in data
    path.write_bytes(data.replace(b"CREATE TABLE leases", b"CREATE \xa0ABLE leases"))


def test_a_schema_that_is_no_text_any_more_is_told_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def save() -> None:
        store = SqliteStore(path)
        await store.save(turn("r1"))
        await store.aclose()

    asyncio.run(save())
    spoil_schema(path)
    for use in (SqliteStore, lambda path: examine_store(f"sqlite:{path}")):
        with pytest.raises(StoreDamaged, match=r"malformed database schema.*`isthmus store check`"):
            use(path)
    with pytest.raises(StoreDamaged, match="malformed database schema"):
        back_up_store(f"sqlite:{path}", tmp_path / "copy.db")


def test_also_where_it_happens_while_the_store_is_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "store.db"

    async def main() -> None:
        store = SqliteStore(path)
        await store.save(turn("r1"))
        await store.aclose()
        store = SqliteStore(path)
        spoil_schema(path)
        try:
            with pytest.raises(StoreDamaged, match=r"`r1`.*malformed database schema"):
                await store.load("r1")
            with suppress(StoreUnavailable, StoreDamaged):
                await store.save(turn("r2"))
        finally:
            await store.aclose()

    asyncio.run(main())
    assert not any(record.exc_info for record in caplog.records)
