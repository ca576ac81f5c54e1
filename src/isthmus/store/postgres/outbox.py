"""The outbox in PostgreSQL: `queue` is a part of the transaction that ends a response, the rest are their own.

A row that is taken has its end of the take as `due_at`: who took it and says nothing more has lost it then. Of one that
was given up `due_at` says when. Whoever takes rows passes over those that another one is taking (`SKIP LOCKED`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from isthmus.ports import Backlog, Delivery, Notice
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import NOW
from isthmus.store.postgres.pool import Pool
from isthmus.store.postgres.texts import text
from isthmus.store.refusals import NO_RECEIVER, QUEUE_FULL

_COLUMNS: Final = "id, endpoint, type, about, body, owner, attempts, queued_at, due_at, reason, given_up"
_FREE: Final = f"(holder = '' OR due_at <= {NOW})"


def queue(connection: Connection, notices: Sequence[Notice], now: float | None) -> None:
    """Unless the receiver was told of that response before. Those who queue at the same moment do not see each other:
    a few more than `most` may wait then, one for each connection."""
    for notice in notices:
        facts = {
            "id": notice.id,
            "endpoint": notice.endpoint,
            "type": notice.type,
            "about": notice.about,
            "body": notice.body,
            "owner": notice.owner,
            "most": notice.most,
            "full": QUEUE_FULL,
            "now": now,
        }
        connection.execute(
            "WITH counted AS (SELECT count(*) >= %(most)s AS full FROM (SELECT 1 FROM outbox"
            " WHERE endpoint = %(endpoint)s AND NOT given_up LIMIT %(most)s) AS waiting)"
            f" INSERT INTO outbox ({_COLUMNS}, holder) SELECT %(id)s, %(endpoint)s, %(type)s, %(about)s, %(body)s,"
            f" %(owner)s, 0, {NOW}, {NOW}, CASE WHEN counted.full THEN %(full)s ELSE '' END, counted.full, ''"
            " FROM counted ON CONFLICT DO NOTHING",
            facts,
        )
        connection.execute(
            "DELETE FROM outbox WHERE key IN (SELECT key FROM outbox WHERE endpoint = %(endpoint)s AND given_up"
            " ORDER BY due_at DESC, key DESC OFFSET %(most)s)",
            facts,
        )


class PostgresOutbox:
    """To be inherited by the store: these are methods of `ports.Outbox`."""

    pool: Pool
    _at: Callable[[], float | None]

    async def take_due(self, endpoint: str, *, holder: str, seconds: float, most: int) -> list[Delivery]:
        take = (
            f"WITH clock AS MATERIALIZED (SELECT {NOW} AS at), due AS MATERIALIZED (SELECT key, due_at FROM outbox"
            " WHERE endpoint = %(endpoint)s AND NOT given_up AND due_at <= (SELECT at FROM clock)"
            " ORDER BY due_at, key LIMIT %(most)s FOR UPDATE SKIP LOCKED)"
            " UPDATE outbox AS o SET attempts = o.attempts + 1, holder = %(holder)s,"
            " due_at = clock.at + %(seconds)s::float8"
            " FROM due, clock WHERE o.key = due.key"
            f" RETURNING due.due_at, o.key, clock.at, {', '.join(f'o.{name}' for name in _COLUMNS.split(', '))}"
        )
        facts = {"endpoint": endpoint, "holder": holder, "seconds": seconds, "most": most}
        rows = await self.pool.write(lambda connection: self._ask(connection, take, facts).fetchall())
        return [_read(row, at) for _, _, at, *row in sorted(rows, key=lambda row: row[:2])]

    async def next_due(self, endpoint: str) -> float | None:
        asked = f"SELECT min(due_at) - {NOW} FROM outbox WHERE endpoint = %(endpoint)s AND NOT given_up"
        row = await self.pool.read(lambda connection: self._ask(connection, asked, {"endpoint": endpoint}).fetchone())
        due: float | None = row[0]
        return due

    async def delivered(self, id: str, *, holder: str) -> bool:
        change = "DELETE FROM outbox WHERE id = %(id)s AND holder = %(holder)s AND holder <> ''"
        return bool(await self._count(change, id=text(id), holder=holder))

    async def put_off(self, id: str, *, holder: str, seconds: float | None, reason: str) -> bool:
        change = (
            "UPDATE outbox SET holder = '', reason = %(reason)s, given_up = %(given_up)s,"
            f" due_at = {NOW} + %(seconds)s::float8 WHERE id = %(id)s AND holder = %(holder)s AND holder <> ''"
        )
        facts = {"holder": holder, "reason": text(reason), "given_up": seconds is None, "seconds": seconds or 0.0}
        return bool(await self._count(change, id=text(id), **facts))

    async def backlog(self, endpoint: str) -> Backlog:
        counted = (
            "SELECT count(*) FILTER (WHERE NOT given_up), count(*) FILTER (WHERE given_up) FROM outbox"
            " WHERE endpoint = %(endpoint)s"
        )
        row = await self.pool.read(lambda connection: self._ask(connection, counted, {"endpoint": endpoint}).fetchone())
        return Backlog(*row)

    async def deliveries(self, *, most: int = 1000) -> list[Delivery]:
        listed = f"SELECT {NOW}, {_COLUMNS} FROM outbox ORDER BY given_up DESC, due_at, key LIMIT %(most)s"
        rows = await self.pool.read(lambda connection: self._ask(connection, listed, {"most": most}).fetchall())
        return [_read(row, at) for at, *row in rows]

    async def deliver_again(self, id: str | None = None) -> int:
        change = (
            f"UPDATE outbox SET queued_at = {NOW}, due_at = {NOW}, attempts = 0, holder = '', given_up = false WHERE "
        )
        return await self._count(change + _chosen(id), id=id)

    async def forget_deliveries(self, id: str | None = None) -> int:
        return await self._count(f"DELETE FROM outbox WHERE {_chosen(id)}", id=id)

    async def tidy_outbox(self, *, known: frozenset[str], give_up: float, keep: float) -> int:
        forget = f"DELETE FROM outbox WHERE given_up AND due_at <= {NOW} - %(keep)s::float8"
        leave = (
            f"UPDATE outbox SET given_up = true, due_at = {NOW}, holder = '', reason = %(reason)s WHERE NOT given_up"
            f" AND due_at <= {NOW} AND queued_at <= {NOW} - %(give_up)s::float8"
            " AND NOT endpoint = ANY(%(known)s::text[])"
        )
        facts = {"keep": keep, "give_up": give_up, "reason": NO_RECEIVER, "known": list(known)}
        return await self._count(forget, **facts) + await self._count(leave, **facts)

    async def _count(self, statement: str, **facts: Any) -> int:
        """How many rows it changed."""
        changed = await self.pool.write(
            lambda connection: self._ask(connection, f"{statement} RETURNING 1", facts).fetchall()
        )
        return len(changed)

    def _ask(self, connection: Connection, statement: str, facts: dict[str, Any]) -> Any:
        used = {name: value for name, value in {**facts, "now": self._at()}.items() if f"%({name})s" in statement}
        return connection.execute(statement, used)


def _chosen(id: str | None) -> str:
    return "given_up" if id is None else f"id = %(id)s AND {_FREE}"


def _read(row: Sequence[Any], now: float) -> Delivery:
    id, endpoint, type, about, body, owner, attempts, queued_at, due_at, reason, given_up = row
    notice = Notice(id, endpoint, type, about, body, owner)
    return Delivery(notice, attempts, now - queued_at, due_at - now, reason, given_up)
