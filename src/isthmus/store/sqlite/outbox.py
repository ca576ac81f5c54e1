"""The outbox in SQLite: `queue` is a part of the transaction that ends a response, the rest are their own.

A row that is taken has its end of the take as `due_at`: who took it and says nothing more has lost it then. Of one that
was given up `due_at` says when. No `RETURNING`: SQLite before 3.35 is in use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from isthmus.ports import Backlog, Delivery, Notice
from isthmus.store.refusals import NO_RECEIVER, QUEUE_FULL
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer

Clock = Callable[[], float]
_COLUMNS: Final = "id, endpoint, type, about, body, owner, attempts, queued_at, due_at, reason, given_up"
_FREE: Final = "(holder = '' OR due_at <= :now)"


def queue(connection: sqlite3.Connection, notices: Sequence[Notice], now: Clock) -> None:
    """Unless the receiver was told of that response before."""
    for notice in notices:
        at, most = now(), notice.most
        full = connection.execute(
            "SELECT 1 FROM outbox WHERE endpoint = ? AND given_up = 0 LIMIT 1 OFFSET ?", (notice.endpoint, most - 1)
        ).fetchone()
        connection.execute(
            f"INSERT OR IGNORE INTO outbox ({_COLUMNS}, holder) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, '')",
            (
                *(notice.id, notice.endpoint, notice.type, notice.about, notice.body, notice.owner),
                *(at, at, QUEUE_FULL if full else "", bool(full)),
            ),
        )
        if full:
            connection.execute(
                "DELETE FROM outbox WHERE key IN (SELECT key FROM outbox WHERE endpoint = ? AND given_up = 1"
                " ORDER BY due_at DESC, key DESC LIMIT -1 OFFSET ?)",
                (notice.endpoint, most),
            )


class SqliteOutbox:
    """To be inherited by the store: these are methods of `ports.Outbox`."""

    writer: Writer
    readers: Readers
    _now: Clock

    async def take_due(self, endpoint: str, *, holder: str, seconds: float, most: int) -> list[Delivery]:
        take = partial(_take_due, endpoint=endpoint, holder=holder, seconds=seconds, most=most, now=self._now)
        return await self.writer.run(take)

    async def next_due(self, endpoint: str) -> float | None:
        return await self.readers.run(partial(_next_due, endpoint=endpoint, now=self._now))

    async def delivered(self, id: str, *, holder: str) -> bool:
        change = "DELETE FROM outbox WHERE id = :id AND holder = :holder AND holder <> ''"
        return bool(await self._change(change, id=id, holder=holder))

    async def put_off(self, id: str, *, holder: str, seconds: float | None, reason: str) -> bool:
        change = (
            "UPDATE outbox SET holder = '', reason = :reason, given_up = :given_up, due_at = :now + :seconds"
            " WHERE id = :id AND holder = :holder AND holder <> ''"
        )
        facts = {"id": id, "holder": holder, "reason": reason, "given_up": seconds is None, "seconds": seconds or 0.0}
        return bool(await self._change(change, **facts))

    async def backlog(self, endpoint: str) -> Backlog:
        return await self.readers.run(partial(_backlog, endpoint=endpoint))

    async def deliveries(self, *, most: int = 1000) -> list[Delivery]:
        return await self.readers.run(partial(_deliveries, most=most, now=self._now))

    async def deliver_again(self, id: str | None = None) -> int:
        change = "UPDATE outbox SET queued_at = :now, due_at = :now, attempts = 0, holder = '', given_up = 0 WHERE "
        return await self._change(change + _chosen(id), id=id)

    async def forget_deliveries(self, id: str | None = None) -> int:
        return await self._change(f"DELETE FROM outbox WHERE {_chosen(id)}", id=id)

    async def tidy_outbox(self, *, known: frozenset[str], give_up: float, keep: float) -> int:
        return await self.writer.run(partial(_tidy, known=known, give_up=give_up, keep=keep, now=self._now))

    async def _change(self, statement: str, **facts: Any) -> int:
        """How many rows it changed; `:now` is the clock's."""

        def change(connection: sqlite3.Connection) -> int:
            return connection.execute(statement, {**facts, "now": self._now()}).rowcount

        return await self.writer.run(change)


def _take_due(
    connection: sqlite3.Connection, endpoint: str, holder: str, seconds: float, most: int, now: Clock
) -> list[Delivery]:
    at = now()
    ids = connection.execute(
        "SELECT id FROM outbox WHERE endpoint = ? AND given_up = 0 AND due_at <= ? ORDER BY due_at, key LIMIT ?",
        (endpoint, at, most),
    ).fetchall()
    connection.executemany(
        "UPDATE outbox SET attempts = attempts + 1, holder = ?, due_at = ? WHERE id = ?",
        [(holder, at + seconds, id) for (id,) in ids],
    )
    rows = [connection.execute(f"SELECT {_COLUMNS} FROM outbox WHERE id = ?", id).fetchone() for id in ids]
    return [_read(row, at) for row in rows]


def _next_due(connection: sqlite3.Connection, endpoint: str, now: Clock) -> float | None:
    (due,) = connection.execute(
        "SELECT min(due_at) FROM outbox WHERE endpoint = ? AND given_up = 0", (endpoint,)
    ).fetchone()
    return None if due is None else due - now()


def _backlog(connection: sqlite3.Connection, endpoint: str) -> Backlog:
    counted = "SELECT coalesce(sum(given_up = 0), 0), coalesce(sum(given_up = 1), 0) FROM outbox WHERE endpoint = ?"
    return Backlog(*connection.execute(counted, (endpoint,)).fetchone())


def _deliveries(connection: sqlite3.Connection, most: int, now: Clock) -> list[Delivery]:
    listed = f"SELECT {_COLUMNS} FROM outbox ORDER BY given_up DESC, due_at, key LIMIT ?"
    at = now()
    return [_read(row, at) for row in connection.execute(listed, (most,))]


def _tidy(connection: sqlite3.Connection, known: frozenset[str], give_up: float, keep: float, now: Clock) -> int:
    at = now()
    forgotten = connection.execute("DELETE FROM outbox WHERE given_up = 1 AND due_at <= ?", (at - keep,)).rowcount
    old = connection.execute(
        "SELECT id, endpoint FROM outbox WHERE given_up = 0 AND due_at <= ? AND queued_at <= ?", (at, at - give_up)
    ).fetchall()
    left = [(at, NO_RECEIVER, id) for id, endpoint in old if endpoint not in known]
    connection.executemany(
        "UPDATE outbox SET given_up = 1, due_at = ?, holder = '', reason = ? WHERE id = ?",
        left,
    )
    return forgotten + len(left)


def _chosen(id: str | None) -> str:
    return "given_up = 1" if id is None else f"id = :id AND {_FREE}"


def _read(row: tuple[Any, ...], now: float) -> Delivery:
    id, endpoint, type, about, body, owner, attempts, queued_at, due_at, reason, given_up = row
    notice = Notice(id, endpoint, type, about, body, owner)
    return Delivery(notice, attempts, now - queued_at, due_at - now, reason, bool(given_up))
