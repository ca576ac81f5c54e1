"""Many rows in few statements: all of them, in their order, and without a turn for each."""

from __future__ import annotations

import sqlite3

import pytest

from isthmus.store.traces.many import insert_many
from isthmus.store.traces.sqlite_tables import SqliteTables


@pytest.mark.parametrize("count", [0, 1, 3, 4, 15, 63, 64, 65, 200, 512, 513, 2_000])
def test_all_rows_are_written_in_their_order_by_few_statements(count: int) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=SqliteTables)
    connection.execute("CREATE TABLE rows (at INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT)")
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    insert_many(connection, "INSERT INTO rows (word)", "", [(f"word {number}",) for number in range(count)])
    connection.set_trace_callback(None)
    found = [word for (word,) in connection.execute("SELECT word FROM rows ORDER BY at")]
    assert found == [f"word {number}" for number in range(count)]
    assert len(asked) <= count // 512 + 9


def test_an_old_sqlite_gets_as_many_values_as_it_takes() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=SqliteTables)
    connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
    connection.execute("CREATE TABLE rows (a, b, c, d, e, f)")
    rows = [(number,) * 6 for number in range(1_000)]
    insert_many(connection, "INSERT INTO rows", "", rows)
    assert connection.execute("SELECT * FROM rows ORDER BY a").fetchall() == rows


def test_rows_that_meet_add_up_also_within_one_statement() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=SqliteTables)
    connection.execute("CREATE TABLE sums (name TEXT PRIMARY KEY, count INTEGER)")
    add = "ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
    for _ in range(2):
        insert_many(connection, "INSERT INTO sums", add, [("a", 1), ("b", 5), ("a", 2), ("a", 3)])
    assert dict(connection.execute("SELECT * FROM sums")) == {"a": 12, "b": 10}


def test_a_row_that_is_refused_takes_its_statement_with_it() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=SqliteTables)
    connection.execute("CREATE TABLE rows (word TEXT NOT NULL)")
    with pytest.raises(sqlite3.IntegrityError):
        insert_many(connection, "INSERT INTO rows", "", [("a",), (None,), ("b",), ("c",)])
    assert connection.execute("SELECT count(*) FROM rows").fetchone() == (0,)
