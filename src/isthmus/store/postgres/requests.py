"""Named requests in the database."""

from __future__ import annotations

from functools import partial
from typing import Final

from isthmus.ports import LOCAL, NamedRequest
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.pool import Pool
from isthmus.store.postgres.texts import name as indexed

_FORGOTTEN: Final = 100
"""Of those that are too old, so many go with each new one: no write takes long, and none is left for ever."""


class PostgresRequests:
    """`ports.NamedRequests`, for the store to have."""

    pool: Pool

    async def name_request(self, name: str, request: NamedRequest, *, owner: str = LOCAL, since: float = 0.0) -> None:
        await self.pool.write(partial(_keep, name=indexed(name), request=request, owner=owner, since=since))

    async def named_request(self, name: str, *, owner: str = LOCAL, since: float = 0.0) -> NamedRequest | None:
        return await self.pool.read(partial(_find, name=indexed(name), owner=owner, since=since))


def _keep(connection: Connection, name: str, request: NamedRequest, owner: str, since: float) -> None:
    connection.execute(
        "DELETE FROM requests WHERE (owner, name) IN"
        " (SELECT owner, name FROM requests WHERE at < %s LIMIT %s FOR UPDATE SKIP LOCKED)",
        (since, _FORGOTTEN),
    )
    connection.execute(
        "INSERT INTO requests (owner, name, digest, id, at) VALUES (%s, %s, %s, %s, %s) ON CONFLICT (owner, name)"
        " DO UPDATE SET digest = excluded.digest, id = excluded.id, at = excluded.at",
        (owner, name, request.digest, request.id, request.at),
    )


def _find(connection: Connection, name: str, owner: str, since: float) -> NamedRequest | None:
    found = connection.execute(
        "SELECT digest, id, at FROM requests WHERE owner = %s AND name = %s AND at >= %s", (owner, name, since)
    ).fetchone()
    return NamedRequest(bytes(found[0]), found[1], found[2]) if found else None
