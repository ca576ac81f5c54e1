"""Stores that are servers, and files that cannot be made or written; the rest is asked in `test_doctor_command`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from isthmus.cli.doctor import stores
from isthmus.cli.doctor.stores import look_at_store, look_at_traces
from isthmus.config.schema import Config
from postgres import database_of, empty_database


def settings(url: str) -> Config:
    config = Config()
    store = msgspec.structs.replace(config.store, url=url, connect_timeout=5.0)
    return msgspec.structs.replace(config, store=store)


def test_a_postgres_answers_with_its_schema_or_is_empty_or_away(tmp_path: Path) -> None:
    (found,) = look_at_store(settings(database_of(tmp_path)), offline=False)
    assert (found.state, found.facts["missing"]) == ("ok", [])
    assert found.facts["schema"].startswith("00")
    assert found.facts["bytes"] > 0
    (empty,) = look_at_store(settings(empty_database()), offline=False)
    assert (empty.state, "makes its tables" in empty.told) == ("ok", True)
    (away,) = look_at_store(settings("postgresql://me:pass-word-1@127.0.0.1:9/x"), offline=False)
    assert (away.state, away.remedy) == ("problem", "start it, or correct `store.url`")
    assert "pass-word-1" not in str(away)
    (unasked,) = look_at_store(settings("postgresql://me:pass-word-1@127.0.0.1:9/x"), offline=True)
    assert unasked.state == "skipped"
    assert "pass-word-1" not in str(unasked)


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="a folder that not even root can write to")
def test_where_no_file_can_be_made_that_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores.os, "access", lambda path, mode: False)
    config = settings("sqlite:/sys/kernel/store.db")
    for found in (look_at_store(config, offline=True)[0], look_at_traces(config)[0]):
        assert found.state == "problem"
        assert "`/sys/kernel` cannot be written to" in found.told


def test_a_file_that_may_not_be_written_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store.db").write_bytes(b"x")
    monkeypatch.setattr(stores.os, "access", lambda path, mode: False)
    found = look_at_store(settings(f"sqlite:{tmp_path}/store.db"), offline=True)[0]
    assert (found.state, found.remedy) == ("problem", "make the file and its folder writable for this user")


def test_a_disk_that_is_nearly_full_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_LITTLE", 1 << 62)
    found = look_at_store(settings(f"sqlite:{tmp_path}/store.db"), offline=True)[-1]
    assert (found.check, found.state) == ("disk", "warning")


def test_a_file_too_large_to_be_looked_through_is_left_to_its_own_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", ((str(each) * 100,) for each in range(20_000)))
        connection.commit()

    real = stores.connect_reader

    def interrupted(where: Path, seconds: float) -> sqlite3.Connection:
        connection = real(where, seconds)
        connection.set_progress_handler(lambda: 1, 1)  # as an interrupt does
        return connection

    monkeypatch.setattr(stores, "connect_reader", interrupted)
    found = stores._look_through(path)
    assert (found.state, found.told) == ("ok", "too large to be looked through here")
    assert "isthmus store check" in found.remedy


def test_what_sqlite_calls_damaged_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (NULL)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = 'CREATE TABLE t (x NOT NULL)'")
        connection.commit()
    found = stores._look_through(path)
    assert (found.state, "NULL value in t.x" in found.told) == ("problem", True)
    assert "isthmus store check" in found.remedy


def test_a_store_in_memory_has_nothing_to_look_at() -> None:
    (found,) = look_at_store(settings("memory:"), offline=True)
    assert (found.state, "ends with the gateway" in found.told) == ("ok", True)
    assert "as its `memory:` store does" in look_at_traces(settings("memory:"))[0].told
