"""What was used, and the money that is set aside, in the database.

Whoever sets money aside holds the locks of the purses: a look at a purse and what is then taken from it are one step.
How a purse stands is read in one statement: what is settled meanwhile is either still set aside or used already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from isthmus.ports.spending import COLUMNS, SETTLED_KEPT, USES_AT_ONCE, Column, Hold, Refusal, Use
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import NOW, lock
from isthmus.store.postgres.pool import Pool
from isthmus.store.postgres.texts import name

_FORGOTTEN: Final = 100
"""Of what is over for long, so much goes with each step: no write takes long, and nothing is left for ever."""
_SUMS: Final = ("requests", "input_tokens", "cached_tokens", "output_tokens", "nanos", "unpriced")
_ADD: Final = (
    f"INSERT INTO uses ({', '.join((*COLUMNS, *_SUMS))}) VALUES ({', '.join(['%s'] * len((*COLUMNS, *_SUMS)))})"
    f" ON CONFLICT ({', '.join(COLUMNS)}) DO UPDATE SET "
    + ", ".join(f"{each} = uses.{each} + excluded.{each}" for each in _SUMS)
)
_HELD: Final = (
    "(SELECT coalesce(sum(nanos), 0) FROM holds"
    f" WHERE purse = %(purse)s AND until > {NOW} AND id <> %(without)s)::bigint"
)


class PostgresSpending:
    """`ports.Spending`, for the store to have."""

    pool: Pool
    _at: Callable[[], float | None]

    async def hold(self, id: str, holds: Sequence[Hold], *, seconds: float) -> Refusal | None:
        return await self.pool.write(lambda connection: _hold(connection, name(id), holds, seconds, self._at()))

    async def settle(self, id: str, uses: Sequence[Use]) -> None:
        await self.pool.write(lambda connection: _settle(connection, name(id), uses, self._at()))

    async def note_uses(self, uses: Sequence[Use]) -> None:
        await self.pool.write(partial(_add, uses=uses))

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
        wanted = {column: name(value) for column, value in asked.items() if value is not None}
        return await self.pool.read(partial(_uses, since=since, until=until, wanted=wanted, by=by, most=most))

    async def held(self, purse: str) -> int:
        return await self.pool.read(lambda connection: _held(connection, purse, self._at()))

    async def prune_uses(self, *, before: str) -> int:
        return await self.pool.write(partial(_prune, before=before))


def _hold(connection: Connection, id: str, holds: Sequence[Hold], seconds: float, now: float | None) -> Refusal | None:
    lock(connection, *sorted({f"purse:{hold.purse}" for hold in holds}))
    for hold in holds:
        used, held = _stands(connection, hold, id, now)
        if used + held + hold.nanos > hold.most:
            return Refusal(hold, used, held)
    _forget(connection, "holds", "until", 0.0, now)
    connection.execute("DELETE FROM holds WHERE id = %s", (id,))
    largest: dict[str, int] = {}
    for hold in holds:
        largest[hold.purse] = max(hold.nanos, largest.get(hold.purse, 0))
    connection.execute(
        "INSERT INTO holds (id, purse, nanos, until)"
        f" SELECT %(id)s, n.purse, n.nanos, {NOW} + %(seconds)s::float8"
        " FROM unnest(%(purses)s::text[], %(nanos)s::bigint[]) AS n (purse, nanos)",
        {"id": id, "purses": list(largest), "nanos": list(largest.values()), "seconds": seconds, "now": now},
    )
    return None


def _settle(connection: Connection, id: str, uses: Sequence[Use], now: float | None) -> bool:
    """Whether it was not settled before."""
    _forget(connection, "settled", "at", SETTLED_KEPT, now)
    first = connection.execute(
        f"INSERT INTO settled (id, at) VALUES (%(id)s, {NOW}) ON CONFLICT DO NOTHING RETURNING 1",
        {"id": id, "now": now},
    ).fetchone()
    if first is None:
        return False
    connection.execute("DELETE FROM holds WHERE id = %s", (id,))
    _add(connection, uses)
    return True


def _add(connection: Connection, uses: Sequence[Use]) -> None:
    rows = [tuple(_told(getattr(use, column)) for column in (*COLUMNS, *_SUMS)) for use in uses]
    if rows:
        connection.cursor().executemany(_ADD, sorted(rows))  # in one order: those who add at once wait, and go on


def _told(value: Any) -> Any:
    return name(value) if isinstance(value, str) else value


def _stands(connection: Connection, hold: Hold, without: str, now: float | None) -> tuple[int, int]:
    """What was used of a purse, and what is set aside in it for others."""
    kind, _, whose = hold.purse.partition(":")
    column = "team" if kind == "team" else "key"
    found = connection.execute(
        f"SELECT (SELECT coalesce(sum(nanos), 0) FROM uses WHERE {column} = %(whose)s AND day >= %(since)s)::bigint,"
        f" {_HELD}",
        {"whose": whose, "since": hold.since, "purse": hold.purse, "without": without, "now": now},
    ).fetchone()
    assert found is not None
    return found[0], found[1]


def _held(connection: Connection, purse: str, now: float | None) -> int:
    found = connection.execute(f"SELECT {_HELD}", {"purse": purse, "without": "", "now": now}).fetchone()
    assert found is not None
    held: int = found[0]
    return held


def _forget(connection: Connection, table: str, column: str, kept: float, now: float | None) -> None:
    old = f"{column} <= {NOW} - %(kept)s::float8"
    connection.execute(
        f"DELETE FROM {table} WHERE {old} AND id IN"
        f" (SELECT id FROM {table} WHERE {old} LIMIT {_FORGOTTEN} FOR UPDATE SKIP LOCKED)",
        {"kept": kept, "now": now},
    )


def _uses(
    connection: Connection, since: str, until: str, wanted: dict[str, str], by: Sequence[Column], most: int
) -> list[Use]:
    columns = [column for column in COLUMNS if column in by]
    shown = [column if column in by else f"'' AS {column}" for column in COLUMNS]
    where = "".join(f" AND {column} = %s" for column in wanted)
    together = f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else " HAVING count(*) > 0"
    rows = connection.execute(
        f"SELECT {', '.join((*shown, *(f'sum({each})::bigint' for each in _SUMS)))} FROM uses"
        f" WHERE day >= %s AND day <= %s{where}{together} LIMIT %s",
        (since, until, *wanted.values(), most),
    )
    return [Use(*row) for row in rows]


def _prune(connection: Connection, before: str) -> int:
    return len(connection.execute("DELETE FROM uses WHERE day < %s RETURNING 1", (before,)).fetchall())
