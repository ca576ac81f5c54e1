"""Events of a response are asked for behind a number, by its owner, and are what was written."""

from __future__ import annotations

import sqlite3

import pytest

from isthmus.errors import RequestRefused, StoreDamaged
from isthmus.ports import LOCAL, EventBatch
from isthmus.store.rows import damage_of_events
from isthmus.store.sqlite.streams import find_streams, load_events
from isthmus.store.sqlite.writes import append_events, save_response
from stored import turn


def save(connection: sqlite3.Connection, id: str, status: str) -> int:
    key = save_response(connection, turn(id, status=status))
    assert key is not None
    return key


@pytest.mark.parametrize(("after", "kept"), [(2, [b"3", b"4"]), (3, [b"4"]), (4, []), (99, [])])
def test_events_come_behind_a_number_and_not_from_before_what_was_dropped(
    connection: sqlite3.Connection, after: int, kept: list[bytes]
) -> None:
    key = save(connection, "r1", "in_progress")
    assert load_events(connection, "r1", LOCAL, -1) == []
    append_events(connection, key, EventBatch(0, (b"0", b"1", b"2")), 3)
    append_events(connection, key, EventBatch(3, (b"3", b"4")), 3)
    assert load_events(connection, "r1", LOCAL, after) == kept
    assert load_events(connection, "r1", "ann", after) == []
    with pytest.raises(RequestRefused) as refused:
        load_events(connection, "r1", LOCAL, 1)
    assert refused.value.code == "events_expired"


def test_a_batch_that_was_changed_is_told_to_nobody(connection: sqlite3.Connection) -> None:
    key = save(connection, "r1", "in_progress")
    append_events(connection, key, EventBatch(0, (b"0", b"1")), 1_000)
    assert load_events(connection, "r1", LOCAL, -1) == [b"0", b"1"]
    connection.execute("UPDATE events SET last = 5 WHERE response = ?", (key,))
    with pytest.raises(StoreDamaged, match="events 0 to 5"):
        load_events(connection, "r1", LOCAL, -1)
    assert damage_of_events(0, 1, b"no events at all", None) == "its events 0 to 1 are not as they were written"


def test_only_streams_of_what_has_ended_are_found_in_the_order_of_their_keys(connection: sqlite3.Connection) -> None:
    keys = {id: save(connection, id, status) for id, status in (("a", "completed"), ("b", "queued"), ("c", "failed"))}
    for key in keys.values():
        append_events(connection, key, EventBatch(0, (b"0",)), 1_000)
    ended = [keys["a"], keys["c"]]
    assert find_streams(connection, after=0, older_than=1e12, count=9) == ended
    assert find_streams(connection, after=keys["a"], older_than=1e12, count=9) == ended[1:]
    assert find_streams(connection, after=0, older_than=1e12, count=1) == ended[:1]
    assert find_streams(connection, after=0, older_than=0.0, count=9) == []
