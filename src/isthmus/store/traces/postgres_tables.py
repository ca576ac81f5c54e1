"""The tables of the traces in PostgreSQL, beside those of the responses.

One row (`trace_state`) says how far the numbers go and how much there is; whoever writes holds it, so that replicas
write one after the other and numbers appear in their order: who follows them misses none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.texts import text

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Answer

_OVERHEAD: Final = 250
"""Bytes that a trace takes beside its content: its row, and its places in the indexes."""
_SIZE: Final = f"octet_length(summary) + coalesce(octet_length(detail), 0) + {_OVERHEAD}"

_WITH: Final = (
    b"SELECT chunk, words FROM places WHERE chunk >= %s AND chunk < %s AND position(%s::bytea in words) > 0"
    b" ORDER BY chunk DESC"
)
_LAST: Final = b"SELECT latest, (SELECT ended FROM traces ORDER BY seq DESC LIMIT 1) FROM trace_state"
_COUNT_ANEW: Final = (
    f"INSERT INTO trace_state SELECT true, coalesce(max(seq), 0), coalesce(sum({_SIZE}), 0) FROM traces"
    " ON CONFLICT DO NOTHING"
).encode()


class PostgresTables:
    most_values: Final = 65_535
    """Its protocol counts them in two bytes."""
    pads: Final = False
    flags: Final = (False, True)

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Answer:
        return self.connection.execute(_translate(statement), [_fit(value) for value in values])

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(_translate(statement), [[_fit(value) for value in row] for row in rows])

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.connection.transaction():
            while self.connection.execute("SELECT 1 FROM trace_state FOR UPDATE").fetchone() is None:
                self.connection.execute(_COUNT_ANEW)  # somebody has tidied up too well
            yield

    def last(self) -> tuple[int, float]:
        found = self.connection.execute(_LAST).fetchone()
        return (0, 0.0) if found is None else (int(found[0]), found[1] or 0.0)

    def note_added(self, latest: int, traces: int, bytes: int) -> None:
        added = bytes + traces * _OVERHEAD
        self.connection.execute("UPDATE trace_state SET latest = %s, bytes = bytes + %s", (latest, added))

    def chunks_with(self, sought: bytes, first: int, before: int) -> Iterable[tuple[int, bytes]]:
        return self.connection.execute(_WITH, (first, before, sought)).fetchall()

    def drop_oldest(self, before: int, most: int) -> int:
        oldest = "SELECT seq FROM traces WHERE seq < %s ORDER BY seq LIMIT %s"
        dropped = self.connection.execute(
            f"WITH gone AS (DELETE FROM traces WHERE seq IN ({oldest})"
            f" RETURNING {_SIZE} AS size) SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone".encode(),
            (before, most),
        ).fetchone()
        assert dropped is not None
        self.connection.execute("UPDATE trace_state SET bytes = greatest(0, bytes - %s)", (dropped[1],))
        return int(dropped[0])

    def measure(self) -> int:
        return self._state("bytes")

    def give_back(self) -> None:
        """The server's own housekeeping does that."""

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Until the server tidies its tables, its files still have what was there before."""
        yield

    def close(self) -> None:
        self.connection.close()

    def _state(self, name: str) -> int:
        found = self.connection.execute(f"SELECT {name} FROM trace_state".encode()).fetchone()
        return 0 if found is None else int(found[0])


@cache
def _translate(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _fit(value: Any) -> Any:
    return text(value) if isinstance(value, str) else value
