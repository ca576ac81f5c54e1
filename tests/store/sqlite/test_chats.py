"""The list of completions in the file: by an index, without what is damaged."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from isthmus.store.sqlite.store import SqliteStore
from store.test_chats import completion, ids


def test_a_page_is_read_from_an_index_and_loads_only_its_own_rows(connection: sqlite3.Connection) -> None:
    plan = connection.execute(
        "EXPLAIN QUERY PLAN SELECT response FROM chats WHERE owner = 'local' AND response > 7"
        " ORDER BY response asc LIMIT 21"
    ).fetchall()
    [(*_, step)] = plan
    assert "INDEX chats_by_owner (owner=? AND response>?)" in step


def test_a_filter_that_nothing_fits_unpacks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[Any] = []

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        for number in range(50):
            await store.save_chat(completion(f"c{number}"), {"n": str(number)})
        from isthmus.store import rows

        read = rows.read_piece
        monkeypatch.setattr(rows, "read_piece", lambda *given: unpacked.append(given) or read(*given))
        assert await ids(store, metadata={"n": "none"}) == ([], False)
        assert unpacked == []
        assert await ids(store, metadata={"n": "7"}) == (["c7"], False)
        assert unpacked
        await store.aclose()

    asyncio.run(ask())


def test_a_damaged_one_is_left_out_and_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        for number in range(3):
            await store.save_chat(completion(f"c{number}"), {})
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            connection.execute("UPDATE responses SET skeleton = '{}' WHERE id = 'c1'")
        with caplog.at_level(logging.ERROR, "isthmus.store"):
            assert await ids(store) == (["c0", "c2"], False)
        await store.aclose()

    asyncio.run(ask())
    assert "c1" in caplog.text
