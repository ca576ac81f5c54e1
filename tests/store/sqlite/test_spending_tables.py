"""What is asked before every run is answered by an index alone."""

from __future__ import annotations

import sqlite3


def test_a_purse_is_summed_by_an_index_alone(connection: sqlite3.Connection) -> None:
    for column in ("key", "team"):
        query = f"EXPLAIN QUERY PLAN SELECT sum(nanos) FROM uses WHERE {column} = 'x' AND day >= '2026-11-01'"
        assert f"COVERING INDEX uses_by_{column}" in connection.execute(query).fetchall()[0][-1]
    query = "EXPLAIN QUERY PLAN SELECT sum(nanos) FROM holds WHERE purse = 'x' AND until > 1 AND id <> ''"
    assert "COVERING INDEX holds_by_purse" in connection.execute(query).fetchall()[0][-1]
