"""What both kinds of tables do each in their own way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.ports.packed import pack_all
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options, connect
from isthmus.store.traces.many import insert_many
from isthmus.store.traces.postgres_tables import PostgresTables
from isthmus.store.traces.schema import open_writer
from isthmus.store.traces.tables import Tables
from isthmus.store.traces.writes import Memory, keep
from postgres import database_of
from traced import traced


@pytest.fixture(params=["sqlite", "postgres"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    if request.param == "sqlite":
        with closing(open_writer(None)) as opened:
            yield opened
        return
    options = Options(Address(database_of(tmp_path)))
    with closing(connect(options)) as connection:
        yield PostgresTables(connection)


def test_a_step_is_done_whole_or_not_at_all(tables: Tables) -> None:
    with pytest.raises(ValueError, match="broken"), tables.writing():
        tables.execute("INSERT INTO places VALUES (?, ?)", (1, b"2"))
        raise ValueError("broken")
    assert tables.execute("SELECT count(*) FROM places").fetchone()[0] == 0
    with tables.writing():
        tables.executemany("INSERT INTO places VALUES (?, ?)", [(1, b"2"), (2, b"3")])
    rows = tables.execute("SELECT chunk, words FROM places ORDER BY chunk")
    assert [tuple(row) for row in rows] == [(1, b"2"), (2, b"3")]


def test_numbers_and_times_go_on_when_everything_is_gone(tables: Tables) -> None:
    assert tables.last() == (0, 0.0)
    keep(tables, Memory(), pack_all([traced(str(number), float(number)) for number in range(3)]))
    assert tables.last() == (3, 2.0)
    with tables.writing():
        assert tables.drop_oldest(100, 2) == 2
        assert tables.drop_oldest(100, 2) == 1
    assert tables.last() == (3, 0.0)
    keep(tables, Memory(), pack_all([traced("next", 5.0)]))
    assert tables.last() == (4, 5.0)


def test_chunks_with_a_word_come_the_newest_first(tables: Tables) -> None:
    with tables.writing():
        tables.executemany("INSERT INTO places VALUES (?, ?)", [(number, b"..word..") for number in range(10)])
        tables.execute("UPDATE places SET words = ? WHERE chunk = 5", (b"w0rd",))
    assert [chunk for chunk, _ in tables.chunks_with(b"word", 3, 8)] == [7, 6, 4, 3]
    assert [bytes(words) for _, words in tables.chunks_with(b"word", 0, 1)] == [b"..word.."]


def test_what_is_added_in_one_statement_is_added_once(tables: Tables) -> None:
    """Whether rows are missing to the next power of two or not."""
    into, then = "INSERT INTO places (chunk, words)", "ON CONFLICT (chunk) DO UPDATE SET words = excluded.words"
    for count in (1, 3, 5, 8):
        rows = [(number, b"%d" % number) for number in range(count)]
        with tables.writing():
            insert_many(tables, into, then, rows, rows[-1])
        there = tables.execute("SELECT chunk, words FROM places ORDER BY chunk").fetchall()
        assert [(chunk, bytes(words)) for chunk, words in there] == rows


def test_what_is_measured_grows_with_what_comes_and_shrinks_with_what_goes(tables: Tables) -> None:
    empty = tables.measure()
    keep(tables, Memory(), pack_all([traced(str(number)) for number in range(500)]))
    full = tables.measure()
    assert full - empty > 500 * 200
    with tables.writing():
        tables.drop_oldest(500, 499)
    assert tables.measure() < full - (full - empty) / 2
    tables.give_back()


def test_whatever_is_erased_the_rest_is_written(tables: Tables) -> None:
    keep(tables, Memory(), pack_all([traced("1")]))
    with tables.erasing(), tables.writing():
        tables.execute("UPDATE traces SET detail = NULL")
    assert tables.execute("SELECT detail FROM traces").fetchone()[0] is None
