"""How damage is set aside: what could be read is kept, and a step that fails is undone."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest

from isthmus.store.damage import Damage
from isthmus.store.sqlite.damage import read_rows, set_aside, transaction
from stored import new_database


def test_what_is_set_aside_can_be_read_again() -> None:
    connection = new_database()
    set_aside(connection, Damage("conversation", "conv_1", "broken"), {"items": [{"data": b"\x00"}]})
    kind, id, reason, content = connection.execute("SELECT kind, id, reason, content FROM quarantine").fetchone()
    assert (kind, id, reason) == ("conversation", "conv_1", "broken")
    assert msgspec.json.decode(content) == {"items": [{"data": "AA=="}]}


def test_a_step_that_fails_is_undone() -> None:
    connection = new_database()
    with pytest.raises(sqlite3.OperationalError), transaction(connection):
        set_aside(connection, Damage("file", "", "x"), {})
        connection.execute("SELECT * FROM nowhere")
    assert connection.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)
    assert not connection.in_transaction


def test_what_cannot_be_read_is_said_so() -> None:
    connection = new_database()
    assert read_rows(connection, "SELECT 1 AS one WHERE 1 = ?", 1) == [{"one": 1}]
    assert str(read_rows(connection, "SELECT * FROM nowhere WHERE 1 = ?", 1)).startswith("cannot be read")
