"""The file: made once, known again, and never another program's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.store.traces.schema import open_reader, open_writer


def test_a_file_is_made_and_known_again(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    for _ in range(2):
        with closing(open_writer(path)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            assert connection.execute("SELECT count(*) FROM traces").fetchone()[0] == 0
    with closing(open_reader(path)) as reader, pytest.raises(sqlite3.OperationalError):
        reader.execute("DELETE FROM traces")


def test_two_who_make_it_at_the_same_time_make_one(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "t.db")), closing(open_writer(tmp_path / "t.db")) as second:
        assert second.execute("SELECT count(*) FROM kinds").fetchone()[0] == 0


@pytest.mark.parametrize("made", ["CREATE TABLE other (x)", "PRAGMA user_version = 99"])
def test_what_somebody_else_made_is_not_touched(tmp_path: Path, made: str) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute(made)
        theirs.execute("CREATE TABLE IF NOT EXISTS more (x)")
        theirs.commit()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="another program or a later version"):
        open_writer(path)
    assert path.read_bytes()[100:] == before[100:]


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="make the file and its folder writable"):
        open_writer(tmp_path / "nowhere" / "t.db")
