"""Names in the file go a few at a time, found by an index."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from isthmus.ports import NamedRequest
from isthmus.store.sqlite.store import SqliteStore


def test_no_write_forgets_more_than_a_few(tmp_path: Path) -> None:
    async def ask() -> list[int]:
        store = SqliteStore(tmp_path / "store.db")
        counts = []
        for number in range(250):
            await store.name_request(f"k{number}", NamedRequest(b"", "r", 1.0))
        for number in range(3):
            await store.name_request(f"new{number}", NamedRequest(b"", "r", 9.0), since=5.0)
            with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
                counts += connection.execute("SELECT count(*) FROM requests").fetchone()
        await store.aclose()
        return counts

    assert asyncio.run(ask()) == [151, 52, 3]


def test_the_old_ones_are_found_by_an_index(connection: sqlite3.Connection) -> None:
    plan = connection.execute("EXPLAIN QUERY PLAN SELECT owner, name FROM requests WHERE at < 1 LIMIT 100").fetchall()
    assert "INDEX requests_by_age" in plan[0][-1]
