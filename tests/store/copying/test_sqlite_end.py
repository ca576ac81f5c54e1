from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.store.copying.sqlite_end import SqliteEnd


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no store at"):
        SqliteEnd(tmp_path / "x.db", make=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE mine (a)")
    before = (tmp_path / "x.db").read_bytes()
    with pytest.raises(ConfigError, match="another program"):
        SqliteEnd(tmp_path / "x.db", make=True)
    assert (tmp_path / "x.db").read_bytes() == before
