"""A file of an earlier version is taken as it is: every trace of it is found again."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from isthmus.store.traces import earlier
from isthmus.store.traces.schema import is_made, open_reader
from isthmus.store.traces.sqlite import SqliteTraces
from traced import keep_in, traced

COUNT = 300


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """As version 1 left it: a row for each word."""
    path = tmp_path / "t.db"
    store = SqliteTraces(path)
    keep_in(store, [traced(str(number), float(number), thread=f"t{number % 7}") for number in range(COUNT)])
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE places")
        connection.execute("DROP TABLE patterns")
        connection.execute("ALTER TABLE traces DROP COLUMN pattern")
        connection.execute(
            "CREATE TABLE places (place INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (place, seq)) WITHOUT ROWID"
        )
        words = [
            (word, number + 1)
            for number in range(COUNT)
            for word in (f"req_{number}", f"resp_{number}", f"t{number % 7}")
        ]
        connection.executemany(
            "INSERT INTO places VALUES (?, ?)",
            [(seq // 2_048 << 32 | crc32(word.encode()), seq) for word, seq in words],
        )
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    return path


@pytest.mark.parametrize("many", [1, 1_000])
def test_every_word_is_found_again_by_who_writes(file: Path, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier, "_MANY", many)
    assert is_made(file)
    store = SqliteTraces(file)
    keep_in(store, [traced("new", float(COUNT))])
    for name in ("req_0", "resp_63", "req_64", f"resp_{COUNT - 1}", "req_new"):
        found = asyncio.run(store.find(None, name))
        assert found is not None
        assert name in (found.summary.id, found.summary.response)
    assert len(asyncio.run(store.walk(None, "req_0"))) == len(range(0, COUNT, 7))
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_who_only_reads_brings_it_up_to_date_as_well(file: Path) -> None:
    with closing(open_reader(file)) as reader:
        assert reader.execute("SELECT count(*) FROM places").fetchone()[0] == COUNT // 64 + 1
    store = SqliteTraces(file)
    assert asyncio.run(store.find(None, "resp_200")) is not None
    store.close()
