"""Many rows in few statements: whoever writes shares the interpreter with the loop that serves.

In: the beginning and the end of an `INSERT`, and rows. `executemany` gives the interpreter away and asks for it again
with every row; while the loop is busy each of these turns costs more than the row does. So one statement takes as many
rows as fit, each length a power of two: these few SQLite keeps prepared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # a server starts without it
    from isthmus.store.traces.tables import Tables


_MOST: Final = 512
"""Rows of the longest statement."""


def insert_many(
    tables: Tables, into: str, then: str, rows: Sequence[tuple[Any, ...]], idle: tuple[Any, ...] | None = None
) -> None:
    """`into`: all before `VALUES`; `then`: what stands behind the rows, if anything. `idle`: a row that changes nothing
    beside the others; with as many of these as are missing to the next power of two, they are one statement."""
    at, left = 0, len(rows)
    width = len(rows[0]) if rows else 1
    most = min(_MOST, tables.most_values // width)
    if idle is not None and tables.pads and left < most:
        missing = (1 << (left - 1).bit_length()) - left
        rows, left = [*rows, *[idle] * missing], left + missing
    while left:
        length = 1 << min(left, most).bit_length() - 1
        tables.execute(_statement(into, then, width, length), tuple(chain.from_iterable(rows[at : at + length])))
        at, left = at + length, left - length


@cache
def _statement(into: str, then: str, width: int, length: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{into} VALUES {', '.join([row] * length)} {then}"
