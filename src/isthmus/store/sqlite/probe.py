"""Whether a response of some size can be saved: through every table, to the disk, and out again.

A write of a few bytes proves little: on a full disk it finds room in the log that was there before.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from isthmus.ports import EventBatch, StoredResponse
from isthmus.store.sqlite.writes import append_events, remove_row, save_response

_SIZE: Final = 256 * 1024
_SAMPLE: Final = StoredResponse(
    id="probe", response=b'{"output":[{"id":"probe"}]}', input=(b'{"type":"probe"}',), owner="probe"
)


def probe(connection: sqlite3.Connection) -> None:
    """Raises the error of SQLite; an open transaction is the caller's to undo."""
    connection.execute("BEGIN IMMEDIATE")
    key = save_response(connection, _SAMPLE)
    assert key is not None
    append_events(connection, key, EventBatch(0, (b"{}",)), _SIZE)
    remove_row(connection, key)  # nobody ever sees it
    connection.execute("INSERT OR REPLACE INTO scratch (key, data) VALUES (1, randomblob(?))", (_SIZE,))
    connection.execute("COMMIT")
    connection.execute("DELETE FROM scratch")
