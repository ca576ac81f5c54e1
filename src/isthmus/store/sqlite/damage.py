"""What is not as it was written: how it is set aside."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from isthmus.store.damage import Damage
from isthmus.store.sqlite.connect import FAULTS


def set_aside(connection: sqlite3.Connection, damage: Damage, content: Mapping[str, Any]) -> None:
    """Keep what could still be read of it in the table `quarantine`."""
    connection.execute(
        "INSERT INTO quarantine (kind, id, reason, moved_at, content) VALUES (?, ?, ?, datetime('now'), ?)",
        (damage.kind, damage.id, damage.reason, msgspec.json.encode(content)),
    )


def read_rows(connection: sqlite3.Connection, query: str, *key: int) -> list[dict[str, Any]] | str:
    """As far as they can be read; bytes travel as base64."""
    try:
        cursor = connection.execute(query, key)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]
    except FAULTS as error:
        return f"cannot be read: {error}"


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    outermost = not connection.in_transaction
    if outermost:
        connection.execute(f"BEGIN {kind}")
    try:
        yield
    finally:
        if outermost and connection.in_transaction:
            connection.execute("ROLLBACK" if sys.exc_info()[0] else "COMMIT")
