from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.store.copying.sqlite_end import SqliteEnd
from isthmus.store.copying.stores import open_end
from isthmus.store.copying.tables import LEFT, Summed, Table, common_tables, in_batches
from postgres import database_of

WORDS = Table("words", ("provider", "data"), ("text", "blob"), (0,))


def test_every_table_of_a_store_is_copied_or_left_for_a_reason(tmp_path: Path) -> None:
    with closing(SqliteEnd(tmp_path / "x.db", make=True)) as end:
        copied = {table.name: set(table.columns) for table in end.tables()}
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name in copied:
            assert copied[name] == {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
    assert there - set(copied) - {"sqlite_sequence"} <= set(LEFT)
    assert {"responses", "pieces", "parts", "events", "streams", "conversations", "outbox", "chats"} <= set(copied)


def test_the_same_tables_are_in_every_store(tmp_path: Path) -> None:
    """Whoever adds one to a store without the others has a copy that refuses, and this."""
    urls = (f"sqlite:{tmp_path}/x.db", database_of(tmp_path))
    with closing(open_end(urls[0], make=True)) as one, closing(open_end(urls[1], make=True)) as two:
        assert common_tables(one.tables(), two.tables(), ("one", "two"))


@pytest.mark.parametrize(
    "other",
    [
        Table("others", *((("provider", "data"), ("text", "blob"), (0,)))),
        Table("words", ("provider",), ("text",), (0,)),
        Table("words", ("provider", "data", "more"), ("text", "blob", "text"), (0,)),
        Table("words", ("provider", "data"), ("text", "integer"), (0,)),
        Table("words", ("provider", "data"), ("text", "blob"), (0, 1)),
    ],
)
def test_stores_that_are_not_alike_are_not_copied(other: Table) -> None:
    with pytest.raises(ConfigError, match=r"the table `(words|others)`.*isthmus store migrate"):
        common_tables([WORDS], [other], ("a", "b"))


def test_the_order_of_columns_means_nothing_and_json_is_json_where_one_end_says_so() -> None:
    chats = Table("chats", ("id", "metadata"), ("integer", "text"), (0,))
    (table,) = common_tables([chats], [Table("chats", ("metadata", "id"), ("json", "integer"), (1,))], ("a", "b"))
    assert table == Table("chats", ("id", "metadata"), ("integer", "json"), (0,))
    assert list(table.plain([(1, '{"b": 1, "a":"ü"}')])) == [(1, '{"a":"ü","b":1}')]
    assert list(chats.plain([(1, "{ }")])) == [(1, "{ }")]


def test_text_that_one_end_keeps_as_bytes_is_the_same_text() -> None:
    deeds = Table("deeds", ("number", "details"), ("integer", "text"), (0,))
    (table,) = common_tables([deeds], [Table("deeds", ("number", "details"), ("integer", "blob"), (0,))], ("a", "b"))
    assert list(table.plain([(1, "ü")])) == list(table.plain([(1, "ü".encode())])) == [(1, "ü")]


def test_a_checksum_knows_order_values_and_their_kinds() -> None:
    sums = []
    for rows in ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], [(1, "a")], [(1, b"a"), (2, "b")], [(1.0, "a"), (2, "b")]):
        summed = Summed()
        for row in rows:
            summed.add(row)
        sums.append(summed.checksum)
    assert len(set(sums)) == len(sums)


def test_batches_are_bounded_and_none_is_empty() -> None:
    assert [len(batch) for batch in in_batches([(0,)] * 1001)] == [500, 500, 1]
    assert [len(batch) for batch in in_batches([(b"x" * 3_000_000,)] * 3)] == [2, 1]
    assert list(in_batches([])) == []
