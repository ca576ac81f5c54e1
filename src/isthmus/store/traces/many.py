"""Many rows in few statements: whoever writes shares the interpreter with the loop that serves.

In: the beginning and the end of an `INSERT`, and rows. `executemany` gives the interpreter away and asks for it again
with every row; while the loop is busy each of these turns costs more than the row does. So one statement takes as many
rows as fit, and there are few lengths of it, which SQLite keeps prepared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables


_LENGTHS: Final = (64, 16, 4, 1)
"""Rows of a statement. Their values must stay below 999, what an old SQLite takes."""


def insert_many(tables: Tables, into: str, then: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """`into`: all before `VALUES`; `then`: what stands behind the rows, if anything."""
    at = 0
    for length in _LENGTHS:
        while len(rows) - at >= length:
            statement = _statement(into, then, len(rows[at]), length)
            tables.execute(statement, tuple(chain.from_iterable(rows[at : at + length])))
            at += length


@cache
def _statement(into: str, then: str, width: int, length: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{into} VALUES {', '.join([row] * length)} {then}"
