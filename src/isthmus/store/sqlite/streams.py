"""The events of responses, as queries for the readers. A batch is compared with its digest before any of it is told."""

from __future__ import annotations

import sqlite3

from isthmus.store.packing import unpack_list
from isthmus.store.refusals import damaged, events_expired
from isthmus.store.rows import damage_of_events


def load_events(connection: sqlite3.Connection, id: str, owner: str, after: int) -> list[bytes]:
    stream = connection.execute(
        "SELECT key, dropped FROM responses JOIN streams ON response = key WHERE id = ? AND owner = ? AND deleted = 0",
        (id, owner),
    ).fetchone()
    if stream is None:
        return []
    key, dropped = stream
    if after < dropped:
        raise events_expired(id, after)
    batches = connection.execute(
        "SELECT first, last, data, digest FROM events WHERE response = ? AND last > ? ORDER BY first", (key, after)
    )
    events: list[bytes] = []
    for first, last, data, digest in batches:
        if (what := damage_of_events(first, last, data, digest)) is not None:
            raise damaged(id, what)
        events += [event for number, event in enumerate(unpack_list(data), first) if number > after]
    return events


def find_streams(connection: sqlite3.Connection, after: int, older_than: float, count: int) -> list[int]:
    """Finished responses made before then whose events are kept, by their keys, those behind `after`."""
    found = connection.execute(
        "SELECT response FROM streams JOIN responses ON key = response WHERE response > ? AND bytes > 0"
        " AND created_at < ? AND status NOT IN ('queued', 'in_progress') ORDER BY response LIMIT ?",
        (after, older_than, count),
    )
    return [key for (key,) in found]
