"""What was used, and the money that is set aside, in the file: inside the writer's transaction a look at a purse and
what is then taken from it are one step, for every process that has the file open."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from isthmus.ports.spending import COLUMNS, SETTLED_KEPT, USES_AT_ONCE, Column, Hold, Refusal, Use
from isthmus.store.packing import text
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer

Clock = Callable[[], float]
_FORGOTTEN: Final = 100
"""Of what is over for long, so much goes with each step: no write takes long, and nothing is left for ever."""
_SUMS: Final = ("requests", "input_tokens", "cached_tokens", "output_tokens", "nanos", "unpriced")
_ADD: Final = (
    f"INSERT INTO uses ({', '.join((*COLUMNS, *_SUMS))}) VALUES ({', '.join('?' * len((*COLUMNS, *_SUMS)))})"
    f" ON CONFLICT ({', '.join(COLUMNS)}) DO UPDATE SET "
    + ", ".join(f"{each} = uses.{each} + excluded.{each}" for each in _SUMS)
)


class SqliteSpending:
    """`ports.Spending`, for the store to have."""

    writer: Writer
    readers: Readers
    _now: Clock

    async def hold(self, id: str, holds: Sequence[Hold], *, seconds: float) -> Refusal | None:
        return await self.writer.run(partial(_hold, id=id, holds=holds, seconds=seconds, now=self._now))

    async def settle(self, id: str, uses: Sequence[Use]) -> None:
        await self.writer.run(partial(_settle, id=id, uses=uses, now=self._now))

    async def note_uses(self, uses: Sequence[Use]) -> None:
        await self.writer.run(partial(_add, uses=uses))

    async def uses(
        self,
        *,
        since: str,
        until: str,
        owner: str | None = None,
        key: str | None = None,
        team: str | None = None,
        by: Sequence[Column] = ("day", "key", "provider", "model"),
        most: int = USES_AT_ONCE,
    ) -> list[Use]:
        asked = {"owner": owner, "key": key, "team": team}
        wanted = {name: text(value) for name, value in asked.items() if value is not None}
        return await self.readers.run(partial(_uses, since=since, until=until, wanted=wanted, by=by, most=most))

    async def held(self, purse: str) -> int:
        return await self.readers.run(partial(_held, purse=purse, without="", now=self._now))

    async def prune_uses(self, *, before: str) -> int:
        return await self.writer.run(partial(_prune, before=before))


def _hold(connection: sqlite3.Connection, id: str, holds: Sequence[Hold], seconds: float, now: Clock) -> Refusal | None:
    for hold in holds:
        used, held = _used(connection, hold.purse, hold.since), _held(connection, hold.purse, id, now)
        if used + held + hold.nanos > hold.most:
            return Refusal(hold, used, held)
    at = now()
    _forget(connection, "holds", "until", at)
    connection.execute("DELETE FROM holds WHERE id = ?", (id,))
    connection.executemany(
        "INSERT INTO holds (id, purse, nanos, until) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (id, purse) DO UPDATE SET nanos = max(holds.nanos, excluded.nanos)",
        [(id, hold.purse, hold.nanos, at + seconds) for hold in holds],
    )
    return None


def _settle(connection: sqlite3.Connection, id: str, uses: Sequence[Use], now: Clock) -> None:
    at = now()
    _forget(connection, "settled", "at", at - SETTLED_KEPT)
    if not connection.execute("INSERT OR IGNORE INTO settled (id, at) VALUES (?, ?)", (id, at)).rowcount:
        return
    connection.execute("DELETE FROM holds WHERE id = ?", (id,))
    _add(connection, uses)


def _add(connection: sqlite3.Connection, uses: Sequence[Use]) -> None:
    names = (*COLUMNS, *_SUMS)
    connection.executemany(_ADD, [[_told(getattr(use, name)) for name in names] for use in uses])


def _told(value: Any) -> Any:
    return text(value) if isinstance(value, str) else value


def _used(connection: sqlite3.Connection, purse: str, since: str) -> int:
    kind, _, name = purse.partition(":")
    column = "team" if kind == "team" else "key"
    query = f"SELECT coalesce(sum(nanos), 0) FROM uses WHERE {column} = ? AND day >= ?"
    found: int = connection.execute(query, (name, since)).fetchone()[0]
    return found


def _held(connection: sqlite3.Connection, purse: str, without: str, now: Clock) -> int:
    query = "SELECT coalesce(sum(nanos), 0) FROM holds WHERE purse = ? AND until > ? AND id <> ?"
    found: int = connection.execute(query, (purse, now(), without)).fetchone()[0]
    return found


def _forget(connection: sqlite3.Connection, table: str, column: str, until: float) -> None:
    connection.execute(
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {column} <= ? LIMIT ?) AND {column} <= ?",
        (until, _FORGOTTEN, until),
    )


def _uses(
    connection: sqlite3.Connection, since: str, until: str, wanted: dict[str, str], by: Sequence[Column], most: int
) -> list[Use]:
    columns = [name for name in COLUMNS if name in by]
    shown = [name if name in by else f"'' AS {name}" for name in COLUMNS]
    where = "".join(f" AND {name} = ?" for name in wanted)
    together = f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else " HAVING count(*) > 0"
    rows = connection.execute(
        f"SELECT {', '.join((*shown, *(f'sum({each})' for each in _SUMS)))} FROM uses"
        f" WHERE day >= ? AND day <= ?{where}{together} LIMIT ?",
        (since, until, *wanted.values(), most),
    )
    return [Use(*row) for row in rows]


def _prune(connection: sqlite3.Connection, before: str) -> int:
    return connection.execute("DELETE FROM uses WHERE day < ?", (before,)).rowcount
