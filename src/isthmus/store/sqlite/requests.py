"""Named requests in the file."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Final

from isthmus.ports import LOCAL, NamedRequest
from isthmus.store.packing import text
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer

_FORGOTTEN: Final = 100
"""Of those that are too old, so many go with each new one: no write takes long, and none is left for ever."""


class SqliteRequests:
    """`ports.NamedRequests`, for the store to have."""

    readers: Readers
    writer: Writer

    async def name_request(self, name: str, request: NamedRequest, *, owner: str = LOCAL, since: float = 0.0) -> None:
        await self.writer.run(partial(_keep, name=text(name), request=request, owner=owner, since=since))

    async def named_request(self, name: str, *, owner: str = LOCAL, since: float = 0.0) -> NamedRequest | None:
        return await self.readers.run(partial(_find, name=text(name), owner=owner, since=since))


def _keep(connection: sqlite3.Connection, name: str, request: NamedRequest, owner: str, since: float) -> None:
    connection.execute(
        "DELETE FROM requests WHERE (owner, name) IN (SELECT owner, name FROM requests WHERE at < ? LIMIT ?)",
        (since, _FORGOTTEN),
    )
    connection.execute(
        "INSERT OR REPLACE INTO requests (owner, name, digest, id, at) VALUES (?, ?, ?, ?, ?)",
        (owner, name, request.digest, request.id, request.at),
    )


def _find(connection: sqlite3.Connection, name: str, owner: str, since: float) -> NamedRequest | None:
    found = connection.execute(
        "SELECT digest, id, at FROM requests WHERE owner = ? AND name = ? AND at >= ?", (owner, name, since)
    ).fetchone()
    return NamedRequest(bytes(found[0]), found[1], found[2]) if found else None
