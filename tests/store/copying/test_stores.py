"""Archives and steps of whole stores."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import ConfigError, StoreDamaged
from isthmus.store.copying.stores import back_up_store, copy_store, migrate_store, open_end, restore_store
from isthmus.store.open import ServerLimits, examine_store, open_store
from isthmus.store.sqlite.migrations import MIGRATIONS
from kept_histories import fill
from postgres import empty_database


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path}/x.db"

    async def main() -> None:
        store = open_store(url)
        await fill(store, 1)
        await store.aclose()

    asyncio.run(main())
    (tmp_path / "x.db.key").write_bytes(b"k" * 32)
    return url


def test_what_was_backed_up_is_restored(url: str, tmp_path: Path) -> None:
    made = back_up_store(url, tmp_path / "copy.db")
    new = f"sqlite:{tmp_path}/new.db"
    done = restore_store(tmp_path / "copy.db", new)
    assert (done.responses, done.conversations) == (made.responses, made.conversations)
    assert (tmp_path / "new.db.key").read_bytes() == b"k" * 32
    assert examine_store(new) == examine_store(url)


def test_a_store_that_is_there_is_replaced_only_when_asked(url: str, tmp_path: Path) -> None:
    back_up_store(url, tmp_path / "copy.db")
    with pytest.raises(ConfigError, match=r"`.*x.db` is there already.*`--force`"):
        restore_store(tmp_path / "copy.db", url)
    restore_store(tmp_path / "copy.db", url, force=True)


def test_a_damaged_archive_is_not_restored(url: str, tmp_path: Path) -> None:
    back_up_store(url, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection, connection:
        connection.execute("UPDATE pieces SET data = x'7b7d' WHERE key = 1")
    with pytest.raises(StoreDamaged, match="nothing was restored"):
        restore_store(tmp_path / "copy.db", f"sqlite:{tmp_path}/new.db")
    assert not (tmp_path / "new.db").exists()


def test_an_archive_that_is_not_there_is_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no store at"):
        restore_store(tmp_path / "none.db", url, force=True)


def test_steps_that_are_missing_are_told_and_taken(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/old.db"
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE isthmus_migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
        name, step = MIGRATIONS[0]
        step(connection)
        connection.execute("INSERT INTO isthmus_migrations VALUES (?, '')", (name,))
    missing = [name for name, _ in MIGRATIONS[1:]]
    assert migrate_store(url, dry_run=True) == missing
    assert migrate_store(url, dry_run=True) == missing, "it has done nothing"
    assert migrate_store(url) == missing
    assert migrate_store(url) == []


@pytest.mark.parametrize("what", [migrate_store, lambda url: copy_store(url, "sqlite:x.db")])
def test_what_lives_in_memory_cannot_be_moved(what: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="lives and dies with its gateway"):
        what("memory:")  # type: ignore[operator]
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_not_copied_to_itself(url: str) -> None:
    with pytest.raises(ConfigError, match="source and target"):
        copy_store(url, url)


def test_an_archive_of_a_server_is_a_file_that_any_store_is_restored_from(url: str, tmp_path: Path) -> None:
    server, other = empty_database(), empty_database()
    copy_store(url, server)
    made = back_up_store(server, tmp_path / "copy.db")
    assert {each.name for each in tmp_path.iterdir()} == {"x.db", "x.db.key", "copy.db", "copy.db.key"}
    assert (made.responses, made.conversations) == (examine_store(url).responses, examine_store(url).conversations)
    with pytest.raises(ConfigError, match=r"`.*copy.db` is there already"):
        back_up_store(server, tmp_path / "copy.db")
    with pytest.raises(ConfigError, match="is not empty"):
        restore_store(tmp_path / "copy.db", server)
    for target in (server, other, f"sqlite:{tmp_path}/new.db"):
        done = restore_store(tmp_path / "copy.db", target, force=target == server)
        assert (done.responses, done.conversations) == (made.responses, made.conversations)
        assert copy_store(target, f"sqlite:{tmp_path}/back.db", manner="force").envelope_key
        assert examine_store(f"sqlite:{tmp_path}/back.db") == examine_store(url)


def test_steps_of_a_server_are_told_and_taken() -> None:
    url = empty_database()
    missing = migrate_store(url, dry_run=True)
    assert missing[0] == "0001_responses"
    assert migrate_store(url) == missing
    assert migrate_store(url) == migrate_store(url, dry_run=True) == []


def test_the_schema_of_a_server_is_the_one_that_is_set(url: str) -> None:
    server = empty_database()
    copy_store(url, server, server=ServerLimits(schema="mine"))
    with pytest.raises(ConfigError, match="no store in the schema `isthmus`"):
        open_end(server, make=False)
    with closing(open_end(server, make=False, server=ServerLimits(schema="mine"))):
        pass
