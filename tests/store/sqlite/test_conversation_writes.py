"""What is added to a conversation costs what is added, and shares what the responses have."""

from __future__ import annotations

import sqlite3

import pytest
from msgspec.structs import replace

from isthmus.errors import RequestRefused
from isthmus.ports import StoredConversation
from isthmus.store.sqlite import conversation_rows as rows
from isthmus.store.sqlite import conversation_writes as writes
from isthmus.store.sqlite.writes import save_response
from store.sqlite.test_conversation_rows import MANY, database, steps_of
from stored import message, new_database, turn


def save(connection: sqlite3.Connection, id: str, at: int) -> None:
    record = replace(turn(id), conversation="conv_1", conversation_at=at)
    key = save_response(connection, record)
    assert key is not None
    writes.append_turn(connection, key, record)


def test_the_end_of_a_turn_costs_the_same_in_a_long_conversation() -> None:
    def cost(size: int) -> tuple[int, int]:
        connection = database(size)
        save(connection, "warm", size)
        before = connection.total_changes
        steps = steps_of(connection, lambda: save(connection, "r1", size + 2))
        return connection.total_changes - before, steps

    changed, steps = cost(MANY)
    assert (changed, steps) == cost(100)
    assert changed == 8, "the response, two pieces, two parts, two places, and the conversation"


def test_adding_and_taking_out_cost_the_same_in_a_long_conversation() -> None:
    def cost(size: int) -> int:
        connection = database(size)

        def change() -> None:
            writes.add(connection, "conv_1", "local", [message("x", "msg_x")], 2 * MANY, 2.0, lambda: 0.0)
            writes.take_out(connection, "conv_1", "msg_7", "local", lambda: 0.0)

        return steps_of(connection, change)

    assert cost(MANY) == cost(100)


def test_a_turn_and_its_response_share_what_was_said() -> None:
    connection = database(0)
    save(connection, "r1", 0)
    assert connection.execute("SELECT count(*) FROM pieces").fetchone() == (2,)
    connection.execute("DELETE FROM parts")
    writes.end(connection, "conv_1", "local")
    assert connection.execute("SELECT count(*) FROM pieces").fetchone() == (0,)


def test_one_that_is_damaged_can_still_be_ended() -> None:
    connection = database()
    connection.execute("UPDATE conversations SET metadata = x'00' WHERE key = 1")
    assert writes.end(connection, "conv_1", "local")
    assert rows.find(connection, "conv_1", "local") is None


def test_a_turn_that_comes_too_late_is_refused() -> None:
    connection = database()
    with pytest.raises(RequestRefused, match="was changed while this turn was made"):
        save(connection, "r1", 2)


def test_the_row_says_how_many_items_there_are() -> None:
    connection = new_database()
    writes.start(connection, StoredConversation("conv_1", 1.0), [message("1", "a")])
    save(connection, "r1", 1)
    writes.take_out(connection, "conv_1", "a", "local", lambda: 0.0)
    row = rows.find(connection, "conv_1", "local")
    assert row is not None
    assert (row.items, row.next) == (2, 4)
