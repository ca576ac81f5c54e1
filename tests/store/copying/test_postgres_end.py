from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from isthmus.errors import ConfigError, StoreUnavailable
from isthmus.store.copying.stores import copy_store, open_end
from postgres import empty_database


def test_a_source_that_is_not_there_is_not_made() -> None:
    url = empty_database()
    with pytest.raises(ConfigError, match="there is no store in the schema `isthmus`"):
        open_end(url, make=False)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'isthmus'").fetchone() is None


def test_new_rows_get_keys_behind_those_that_were_copied(tmp_path: Path) -> None:
    with closing(open_end(empty_database(), make=True)) as end:
        pieces = next(table for table in end.tables() if table.name == "pieces")
        row = {"key": 41, "hash": b"h", "owner": "local", "item_id": None, "data": b"{}"}
        end.replace(pieces, [], [tuple(row[column] for column in pieces.columns)])
        end.settle(end.tables())
        ask = getattr(end, "_ask")  # noqa: B009
        made = ask("INSERT INTO pieces (hash, owner, data) VALUES ('i', 'local', '') RETURNING key")
        assert made == [(42,)]


def test_names_that_postgresql_has_no_place_for_are_written_as_the_store_writes_them() -> None:
    with closing(open_end(empty_database(), make=True)) as end:
        words = next(table for table in end.tables() if table.name == "words")
        rows = list(end.fit(words, [("a\0b", "x" * 5000, b"\0", 1.0)]))
        end.replace(words, [], rows)
        end.look()
        (found,) = end.read(words)
    assert found == rows[0]
    assert found[0] == "a\ufffdb"
    assert len(found[1]) < 1100


def test_a_server_that_is_away_is_told_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        copy_store("postgresql://me:hidden@127.0.0.1:1/db", f"sqlite:{tmp_path}/x.db")
    assert "127.0.0.1:1/db" in str(caught.value)
    assert "hidden" not in str(caught.value)
