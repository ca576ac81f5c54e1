"""What servers taught us and said of themselves, as queries for the readers."""

from __future__ import annotations

import sqlite3

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import StoredWord


def load_lessons(connection: sqlite3.Connection, provider: str, model: str, since: float) -> list[Lesson]:
    rows = connection.execute(
        "SELECT provider, model, parameter, value, learned_at FROM lessons"
        " WHERE provider = ? AND model = ? AND learned_at >= ? ORDER BY learned_at",
        (provider, model, since),
    )
    return [Lesson(*row) for row in rows]


def load_words(connection: sqlite3.Connection, since: float) -> list[StoredWord]:
    rows = connection.execute(
        "SELECT provider, place, data, heard_at FROM words WHERE heard_at >= ? ORDER BY heard_at", (since,)
    )
    return [StoredWord(provider, place, bytes(data), heard_at) for provider, place, data, heard_at in rows]
