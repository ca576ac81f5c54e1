"""Words are found again in whatever chunk they stand, and times by halving."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.ports.packed import file_by
from isthmus.ports.traces import TraceFilter
from isthmus.store.traces import places
from isthmus.store.traces.places import LAST, Gathered, add_places, drop_places, find_places, first_since
from isthmus.store.traces.sqlite import SqliteTraces
from isthmus.store.traces.sqlite_tables import SqliteTables
from traced import keep_in, traced


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "CHUNK", 3)


@pytest.mark.usefixtures("small_chunks")
def test_a_word_is_found_in_every_chunk_the_newest_first() -> None:
    store = SqliteTraces()
    keep_in(store, [traced(str(number), thread="same" if number % 4 == 0 else "") for number in range(20)])
    connection = store._writer
    assert connection is not None
    assert list(find_places(connection, "same")) == [17, 13, 9, 5, 1]
    for number in range(20):
        assert list(find_places(connection, f"req_{number}")) == [number + 1]
    assert list(find_places(connection, "nobody")) == []
    store.close()


@pytest.mark.usefixtures("small_chunks")
def test_places_of_traces_that_went_go_by_whole_chunks() -> None:
    store = SqliteTraces()
    keep_in(store, [traced(str(number)) for number in range(10)])
    connection = store._writer
    assert connection is not None
    connection.execute("DELETE FROM traces WHERE seq <= 7")
    drop_places(connection, 8, 100)
    (oldest,) = connection.execute("SELECT min(chunk) FROM places").fetchone()
    assert oldest == 2, "its traces are 6, 7 and 8"
    assert list(find_places(connection, "req_5")) == [6], "whoever asks sees that it is gone"
    assert list(find_places(connection, "req_4")) == []
    assert list(find_places(connection, "req_8")) == [9]
    store.close()


def test_a_thread_that_is_named_after_its_response_needs_no_place_of_its_own() -> None:
    def added(**fields: str) -> bytes:
        gathered: Gathered = defaultdict(bytearray)
        add_places(gathered, 7, file_by(traced("1", **fields).summary))
        (words,) = gathered.values()
        return bytes(words)

    def words(*words: str) -> bytes:
        return b"".join(b"\0\7" + crc32(word.encode()).to_bytes(4, "big") for word in words)

    assert added() == words("req_1", "resp_1")
    assert added(thread="t") == words("req_1", "resp_1", "t")
    assert added(thread="", response="") == added(thread="req_1", response="req_1") == words("req_1")


def test_what_only_looks_like_a_word_is_none() -> None:
    """Between two places, or where the number of a trace stands."""
    store = SqliteTraces()
    connection = store.write(lambda tables: tables)
    word = crc32(b"x").to_bytes(4, "big")
    rows = [(1, b"\0\1abcd" + word + b"\0\1"), (2, b"\0\1ab" + word + b"abcd"), (3, b"\0\5" + word)]
    connection.executemany("INSERT INTO places VALUES (?, ?)", rows)
    assert list(find_places(connection, "x")) == [3 * places.CHUNK + 5]
    assert list(find_places(connection, "\ud800")) == [], "half a character is a word, too"
    store.close()


def dated(at: float) -> str:
    return f"resp_{int(at * 1000):011x}{'0' * 21}"


@pytest.mark.usefixtures("small_chunks")
def test_an_id_that_tells_its_time_is_looked_for_since_then_and_further_back_only_where_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = SqliteTraces()
    moments = [10_000.0 * number for number in range(1, 21)]
    late = dated(moments[-1] + 9_000)  # somebody has set the clock back
    ids = [late, *map(dated, moments[1:])]
    keep_in(store, [traced(str(at), at, response=id, thread="") for at, id in zip(moments, ids, strict=True)])
    connection = store._writer
    assert connection is not None
    looked: list[tuple[int, int]] = []
    look = SqliteTables.chunks_with

    def note(tables: SqliteTables, sought: bytes, first: int, before: int) -> Any:
        looked.append((first, before))
        return look(tables, sought, first, before)

    monkeypatch.setattr(SqliteTables, "chunks_with", note)
    assert list(find_places(connection, ids[14])) == [15]
    assert looked == [(15 // 3, LAST)]
    assert list(find_places(connection, late)) == [1], "none may be missed"
    assert list(find_places(connection, late, near=True)) == []
    assert list(find_places(connection, dated(1.0))) == []
    store.close()


def test_a_group_goes_on_in_the_chunk_that_others_have_begun() -> None:
    store = SqliteTraces()
    for number in range(150):
        keep_in(store, [traced(str(number))])
    keep_in(store, [traced(str(number)) for number in range(150, 400)])
    connection = store._writer
    assert connection is not None
    assert [list(find_places(connection, f"req_{number}")) for number in range(400)] == [
        [number + 1] for number in range(400)
    ]
    (count,) = connection.execute("SELECT count(*) FROM places").fetchone()
    assert count == 400 // places.CHUNK + 1
    store.close()


@settings(max_examples=60)
@given(ended=st.lists(st.integers(0, 20), max_size=12), gaps=st.sets(st.integers(0, 11)), at=st.integers(-1, 22))
def test_times_are_found_by_halving_as_by_looking_at_all(ended: list[int], gaps: set[int], at: int) -> None:
    store = SqliteTraces()
    keep_in(store, [traced(str(number), float(moment)) for number, moment in enumerate(ended)])
    connection = store._writer
    assert connection is not None
    for gap in gaps:
        connection.execute("DELETE FROM traces WHERE seq = ?", (gap + 1,))
    rows = connection.execute("SELECT seq, ended FROM traces ORDER BY seq").fetchall()
    assert first_since(connection, at) == next((seq for seq, moment in rows if moment >= at), LAST)
    listed = asyncio.run(store.list(None, TraceFilter(since=float(max(at, 0))), limit=100, order="asc"))
    assert [each.seq for each in listed.traces] == [seq for seq, moment in rows if moment >= max(at, 0)]
    store.close()
