"""What changes the file, operation by operation: shared content is kept once, and goes with its last holder."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import EventBatch
from isthmus.store.memory_parts import Stream
from isthmus.store.sqlite.learned import load_lessons
from isthmus.store.sqlite.reads import load_response
from isthmus.store.sqlite.streams import load_events
from isthmus.store.sqlite.writes import (
    append_events,
    delete_response,
    find_key,
    keep_lesson,
    remove_branch,
    save_response,
)
from stored import message, new_database, turn

TABLES = ("responses", "pieces", "parts", "streams", "events")
SAME = message("the same words")


def count(connection: sqlite3.Connection) -> dict[str, int]:
    return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


def save(connection: sqlite3.Connection, *given_turn: Any, **fields: Any) -> int:
    key = save_response(connection, turn(*given_turn, **fields))
    assert key is not None
    return key


def test_content_that_occurs_again_is_kept_once(connection: sqlite3.Connection) -> None:
    tools = ["t" * 3000]
    save(connection, "r1", input=(SAME,), output=(SAME,), tools=tools)
    save(connection, "r2", input=(SAME, SAME), output=(), tools=tools)
    assert (count(connection)["pieces"], count(connection)["parts"]) == (2, 3 + 3)
    for id in ("r1", "r2"):
        found = load_response(connection, id, "local")
        assert found is not None
        assert set(found.input) == {SAME}


def test_content_of_two_owners_is_never_shared(connection: sqlite3.Connection) -> None:
    for owner in ("ann", "bob"):
        save(connection, f"r_{owner}", input=(SAME,), output=(), owner=owner)
    assert count(connection)["pieces"] == 2


def test_writing_over_it_keeps_the_row_and_drops_what_nobody_holds(connection: sqlite3.Connection) -> None:
    key = save(connection, "r1", status="in_progress", input=(SAME,), output=(message("partial"),))
    save(connection, "r2", input=(SAME,), output=())
    final = turn("r1", input=(), output=(message("whole"),))
    assert save_response(connection, final) == key
    assert load_response(connection, "r1", "local") == final
    assert count(connection)["pieces"] == 2
    (data,) = connection.execute("SELECT count(*) FROM pieces WHERE data LIKE '%partial%'").fetchone()
    assert data == 0


@pytest.mark.parametrize("changed", [{"owner": "mallory"}, {"previous": "r9"}])
def test_an_id_keeps_its_owner_and_its_parent(connection: sqlite3.Connection, changed: dict[str, Any]) -> None:
    save(connection, "r1", "r0")
    with pytest.raises(ValueError, match="another owner or parent"):
        save_response(connection, turn("r1", changed.get("previous", "r0"), owner=changed.get("owner", "local")))


def test_what_is_deleted_stays_deleted_and_keeps_nothing_but_its_id(connection: sqlite3.Connection) -> None:
    key = save(connection, "r1", "r0", padding="p" * 3000)
    append_events(connection, key, EventBatch(0, (b"{}",)), 100)
    assert not delete_response(connection, "r1", "mallory")
    assert delete_response(connection, "r1", "local")
    assert not delete_response(connection, "r1", "local")
    assert count(connection) == {"responses": 1, "pieces": 0, "parts": 0, "streams": 0, "events": 0}
    row = connection.execute("SELECT id, previous_id, skeleton, memo, model, provider FROM responses").fetchone()
    assert row == ("r1", "r0", b"", b"", "", "")
    assert save_response(connection, turn("r1", "r0")) is None
    assert find_key(connection, "r1", "local") is None
    assert count(connection)["pieces"] == 0


def test_a_branch_goes_from_its_newest_turn_as_far_as_nothing_builds_on_it(connection: sqlite3.Connection) -> None:
    keys = [save(connection, f"r{n}", f"r{n - 1}" if n else None) for n in range(4)]
    save(connection, "meanwhile", "r1")
    newest = (0.0, keys[-1])
    assert remove_branch(connection, keys[-1], newest, 1) == (1, keys[2], None)
    assert remove_branch(connection, keys[2], newest, 99) == (1, None, None)
    left = [id for (id,) in connection.execute("SELECT id FROM responses ORDER BY key")]
    assert left == ["r0", "r1", "meanwhile"]
    assert count(connection)["pieces"] == 6


def test_one_that_names_itself_as_its_parent_can_go(connection: sqlite3.Connection) -> None:
    key = save(connection, "r1", "r1")
    assert remove_branch(connection, key, (0.0, key), 99) == (1, None, None)


def test_a_branch_ends_before_what_is_newer_or_unfinished(connection: sqlite3.Connection) -> None:
    parent, child = save(connection, "parent", at=2.0), save(connection, "child", "parent", at=1.0)
    assert remove_branch(connection, child, (1.0, child), 99) == (1, None, (2.0, parent))
    queued, done = save(connection, "queued", status="queued"), save(connection, "done", "queued")
    assert remove_branch(connection, done, (0.0, done), 99) == (1, None, None)
    assert remove_branch(connection, queued, (0.0, queued), 99) == (0, None, None)


def test_a_parent_that_was_forgotten_is_replaced_by_the_history(connection: sqlite3.Connection) -> None:
    said = (message("said before"),)
    save_response(connection, turn("r2", "gone"), lambda: said)
    assert connection.execute("SELECT previous_id FROM responses").fetchone() == (None,)
    found = load_response(connection, "r2", "local")
    assert found is not None
    assert found.input == (*said, *turn("r2").input)
    save(connection, "r1")
    save_response(connection, turn("r3", "r1"), lambda: said)
    kept = load_response(connection, "r3", "local")
    assert kept == turn("r3", "r1")


def test_a_piece_that_is_damaged_is_written_anew_with_the_next_that_holds_it(connection: sqlite3.Connection) -> None:
    save(connection, "r1", input=(message("said by both"),))
    connection.execute("UPDATE pieces SET data = x'00' WHERE item_id IS NULL")
    save(connection, "r2", input=(message("said by both"),))
    assert load_response(connection, "r1", "local") == turn("r1", input=(message("said by both"),))


def test_what_is_removed_leaves_nothing_behind_in_any_table(connection: sqlite3.Connection) -> None:
    deleted, pruned = (save(connection, id, padding="p" * 3000) for id in ("deleted", "pruned"))
    for key in (deleted, pruned):
        append_events(connection, key, EventBatch(0, (b"{}",)), 100)
    delete_response(connection, "deleted", "local")
    assert list(count(connection).values()) == [2, 3, 3, 1, 1]
    for key in (deleted, pruned):
        assert remove_branch(connection, key, (0.0, key), 99) == (1, None, None)
    assert set(count(connection).values()) == {0}


@given(st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_whatever_is_written_no_piece_is_without_a_holder_and_no_part_without_a_piece(chance: random.Random) -> None:
    connection = new_database()
    words = [message(word, chance.choice((None, "msg_x"))) for word in ("a", "b", "c" * 3000)]
    for _ in range(30):
        id = f"r{chance.randrange(4)}"
        match chance.randrange(4):
            case 0:
                delete_response(connection, id, "local")
            case 1 if (key := find_key(connection, id, "local")) is not None:
                remove_branch(connection, key, (0.0, key), 99)
            case _:
                items = [tuple(chance.choices(words, k=chance.randrange(3))) for _ in range(2)]
                save_response(connection, turn(id, input=items[0], output=items[1]))
        loose = "SELECT count(*) FROM pieces WHERE key NOT IN (SELECT piece FROM parts)"
        broken = "SELECT count(*) FROM parts WHERE piece NOT IN (SELECT key FROM pieces)"
        assert [connection.execute(each).fetchone() for each in (loose, broken)] == [(0,), (0,)]
    connection.close()


# ── events ─────────────────────────────────────────────────────────────────────────────────────────────


def test_events_follow_one_another(connection: sqlite3.Connection) -> None:
    key = save(connection, "r1", status="in_progress")
    append_events(connection, key, EventBatch(5, (b"0", b"1")), 100)
    for first in (0, 5, 6, 8):
        with pytest.raises(ValueError, match=f"event {first} does not follow: expected 7"):
            append_events(connection, key, EventBatch(first, (b"2",)), 100)
    append_events(connection, key, EventBatch(7, ()), 100)
    assert connection.execute("SELECT next, dropped, bytes FROM streams").fetchall() == [(7, -1, 2)]


def test_the_oldest_events_go_first_no_more_than_needed_and_the_newest_never(connection: sqlite3.Connection) -> None:
    key = save(connection, "r1", status="in_progress")
    for first, dropped in ((0, -1), (1, -1), (2, 0), (3, 1)):
        append_events(connection, key, EventBatch(first, (b"12345",)), 12)
        size = 5 * (first - dropped)
        assert connection.execute("SELECT next, dropped, bytes FROM streams").fetchone() == (first + 1, dropped, size)
    append_events(connection, key, EventBatch(4, (b"1" * 50,)), 12)
    assert connection.execute("SELECT next, dropped, bytes FROM streams").fetchone() == (5, 3, 50)
    assert load_events(connection, "r1", "local", 3) == [b"1" * 50]


@given(
    st.lists(st.lists(st.integers(1, 99_999).map(lambda number: b"%d" % number), max_size=4), max_size=8),
    st.integers(0, 20),
)
@settings(max_examples=60)
def test_what_is_kept_is_the_end_of_what_was_told_within_its_bound(told: list[list[bytes]], bound: int) -> None:
    connection = new_database()
    key, everything = save(connection, "r1", status="in_progress"), []
    for events in told:
        append_events(connection, key, EventBatch(len(everything), tuple(events)), bound)
        everything += events
    stream = connection.execute("SELECT next, dropped, bytes FROM streams").fetchone()
    if stream is None:
        assert everything == []
        return
    following, dropped, size = stream
    kept = load_events(connection, "r1", "local", dropped)
    assert (following, kept) == (len(everything), everything[dropped + 1 :])
    assert size == sum(map(len, kept))
    in_memory = Stream()
    for number, events in enumerate(told):
        in_memory.append(EventBatch(sum(map(len, told[:number])), tuple(events)), bound)
    assert dropped == in_memory.dropped, "no more than the bound asks"
    assert size <= bound or connection.execute("SELECT count(*) FROM events").fetchone() == (1,)
    connection.close()


# ── lessons ────────────────────────────────────────────────────────────────────────────────────────────


def lesson(value: str, at: float) -> Lesson:
    return Lesson("one", "m", "tool_choice", value, at)


def test_a_later_lesson_takes_the_place_of_the_same_one(connection: sqlite3.Connection) -> None:
    for at in (1.0, 2.0):
        keep_lesson(connection, lesson("required", at), 0.0, 10)
    assert load_lessons(connection, "one", "m", 0.0) == [lesson("required", 2.0)]


def test_old_lessons_go_and_beyond_the_bound_the_oldest(connection: sqlite3.Connection) -> None:
    for at in range(6):
        keep_lesson(connection, lesson(f"v{at}", float(at)), 1.0, 3)
    assert [each.learned_at for each in load_lessons(connection, "one", "m", 0.0)] == [3.0, 4.0, 5.0]
    keep_lesson(connection, lesson("last", 9.0), 5.0, 3)
    assert [each.learned_at for each in load_lessons(connection, "one", "m", 0.0)] == [5.0, 9.0]
