"""Reading conversations: by an index, at the cost of what is read, and only what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from isthmus.errors import StoreDamaged
from isthmus.ports import StoredConversation
from isthmus.store.sqlite import conversation_rows as rows
from isthmus.store.sqlite import conversation_writes as writes
from stored import message, new_database

MANY = 10_000


def database(items: int = 3) -> sqlite3.Connection:
    connection = new_database()
    said = [message(f"{number}", f"msg_{number}") for number in range(items)]
    writes.start(connection, StoredConversation("conv_1", 1.0), said)
    writes.start(connection, StoredConversation("conv_2", 1.0), said)
    return connection


def steps_of(connection: sqlite3.Connection, ask: Callable[[], Any]) -> int:
    """How many steps of SQLite's machine a question takes: what it costs, on whatever computer."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(step, 1)
    try:
        ask()
    finally:
        connection.set_progress_handler(None, 1)
    return count


def test_a_page_costs_the_same_in_a_long_conversation() -> None:
    def page(size: int, **options: Any) -> int:
        connection = database(size)
        asked = {"limit": 20, "after": None, "order": "desc", **options}
        found = rows.load_page(connection, "conv_1", "local", **asked)
        assert found is not None
        assert len(found.items) == 20
        return steps_of(connection, lambda: rows.load_page(connection, "conv_1", "local", **asked))

    for options in ({}, {"order": "asc"}, {"after": "msg_30"}, {"after": "msg_10", "order": "asc"}):
        assert page(MANY, **options) == page(100, **options)


def test_an_item_costs_the_same_in_a_long_conversation() -> None:
    def item(size: int) -> int:
        connection = database(size)
        return steps_of(connection, lambda: rows.load_item(connection, "conv_1", "msg_42", "local"))

    assert item(MANY) == item(100)


def test_what_a_turn_reads_costs_as_much_as_there_is() -> None:
    def turn(size: int) -> int:
        connection = database(size)
        return steps_of(connection, lambda: rows.load_turns(connection, "conv_1", "local", MANY, None))

    few, many = turn(1_000), turn(MANY)
    assert many == pytest.approx(10 * few, rel=0.02)


def test_pages_are_read_in_the_order_of_the_key() -> None:
    connection = database()
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    rows.load_page(connection, "conv_1", "local", 2, "msg_1", "desc")
    connection.set_trace_callback(None)
    plans = [
        row[3]
        for query in asked
        if query.startswith("SELECT")
        for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert plans
    assert not [step for step in plans if "SCAN" in step or "TEMP B-TREE" in step], plans


CHANGES = {
    "an item": "UPDATE pieces SET data = x'7b7d' WHERE item_id = 'msg_1'",
    "an item that is no text": "UPDATE pieces SET data = 5 WHERE item_id = 'msg_1'",
    "the place of an item": "UPDATE conversation_items SET position = 9 WHERE conversation = 1 AND item_id = 'msg_1'",
    "what stands at its place": "UPDATE conversation_items SET piece = 1 WHERE conversation = 1 AND item_id = 'msg_1'",
    "who said it": "UPDATE conversation_items SET ours = 1 WHERE conversation = 1 AND item_id = 'msg_1'",
    "the name of an item": "UPDATE conversation_items SET item_id = 'x' WHERE conversation = 1 AND item_id = 'msg_1'",
    "a piece that is gone": "DELETE FROM pieces WHERE item_id = 'msg_1'",
    "an item that is gone": "DELETE FROM conversation_items WHERE conversation = 1 AND item_id = 'msg_1'",
    "its metadata": "UPDATE conversations SET metadata = x'7b7d7d' WHERE key = 1",
    "where it stands": "UPDATE conversations SET next = 'x' WHERE key = 1",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_turn_is_not_made_from_what_was_not_written(change: str) -> None:
    connection = database()
    connection.execute(CHANGES[change])
    with pytest.raises(StoreDamaged, match="conversation `conv_1` is damaged"):
        rows.load_turns(connection, "conv_1", "local", MANY, None)
    if "gone" not in change or "piece" in change:
        with pytest.raises(StoreDamaged):
            rows.load_page(connection, "conv_1", "local", 20, None, "asc")
    if "piece" not in change and change not in ("an item", "an item that is no text"):
        assert rows.load_turns(connection, "conv_2", "local", MANY, None) is not None, "nobody else is concerned"


def test_a_reference_to_a_damaged_item_says_so() -> None:
    connection = database()
    connection.execute("UPDATE pieces SET data = x'7b7d' WHERE item_id = 'msg_1'")
    with pytest.raises(StoreDamaged, match="msg_1"):
        rows.find_named(connection, "msg_1", "local")


def test_unused_ones_are_found_by_an_index() -> None:
    connection = database()
    plan = connection.execute(
        "EXPLAIN QUERY PLAN SELECT key FROM conversations WHERE used_at < 5 ORDER BY used_at, key"
    )
    assert "conversations_by_use" in plan.fetchone()[3]
    assert rows.find_unused(connection, 5.0, 0.0, 1) == [1]
    assert rows.find_unused(connection, 1.0, 0.0, 1) == []
