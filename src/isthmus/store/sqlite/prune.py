"""Forgetting what was not used for longest, a few rows at a time.

Branches end in turns that nothing builds on. A reader looks for the next ends, the longest unused first; the writer
removes them, and behind them what only they needed. Saves go on in between, and what they build on is left alone.
Nothing is counted or planned as a whole, however many rows there are: what is kept costs the event loop nothing.
"""

from __future__ import annotations

import math
import sqlite3
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from isthmus.ports import Pruned
from isthmus.store.sqlite import leases, reads, streams, writes
from isthmus.store.sqlite.conversation_rows import find_unused
from isthmus.store.sqlite.conversation_writes import remove
from isthmus.store.sqlite.readers import Readers
from isthmus.store.sqlite.writer import Writer

_STEP: Final = 200
_VACUUM_STEP: Final = 256
"""Pages given back to the file system in one go: other writes come in between."""


@dataclass(frozen=True, slots=True)
class _Step:
    left: tuple[writes.Stamp, ...] = ()
    """Ends of branches, the longest unused first."""
    going_on: int | None = None
    """The turn to go on with in the branch of the first of them."""
    removed: int = 0
    enough: bool = False


async def prune(
    readers: Readers,
    writer: Writer,
    *,
    older_than: float | None,
    max_bytes: int | None,
    conversations: float | None = None,
    now: Callable[[], float],
) -> Pruned:
    before, removed = await readers.run(reads.measure_bytes), 0
    ended = 0 if conversations is None else await _end_unused(writer, conversations, now)
    at, step = (-math.inf, 0), _Step()
    bound = older_than if max_bytes is None else None
    while not step.enough:
        ends = await readers.run(partial(reads.find_ends, after=at, older_than=bound, count=_STEP))
        if not ends:
            break
        at, step = ends[-1], _Step(tuple(ends))
        while step.left and not step.enough:
            step = await writer.run(partial(_remove_some, step=step, older_than=older_than, max_bytes=max_bytes))
            removed += step.removed
    await writer.run(partial(leases.sweep, now=now))
    while await writer.run(_give_back_pages):
        pass
    return Pruned(removed, max(0, before - await readers.run(reads.measure_bytes)), ended)


async def _end_unused(writer: Writer, older_than: float, now: Callable[[], float]) -> int:
    """Conversations, one at a time: each may have thousands of items."""

    def end_one(connection: sqlite3.Connection) -> bool:
        for key in find_unused(connection, older_than, now(), 1):
            remove(connection, key)
            return True
        return False

    ended = 0
    while await writer.run(end_one):
        ended += 1
    return ended


async def drop_events(readers: Readers, writer: Writer, older_than: float) -> None:
    """Let the events of finished responses go that were made before then."""
    after = 0
    while keys := await readers.run(partial(streams.find_streams, after=after, older_than=older_than, count=_STEP)):
        await writer.run(partial(writes.drop_streams, keys=keys))
        after = keys[-1]


def _remove_some(connection: sqlite3.Connection, step: _Step, older_than: float | None, max_bytes: int | None) -> _Step:
    """Remove a bounded number of turns, and say what is left to do."""
    left, going_on, removed = list(step.left), step.going_on, 0
    while left and removed < _STEP:
        newest = left[0]
        if going_on is None:
            too_old = older_than is not None and newest[0] < older_than
            too_much = max_bytes is not None and reads.measure_bytes(connection) > max_bytes
            if not too_old and not too_much:
                return _Step(removed=removed, enough=True)
        count, going_on, end = writes.remove_branch(connection, going_on or newest[1], newest, _STEP - removed)
        removed += count
        if end is not None and end < left[-1]:
            insort(left, end)  # its turn comes; behind the last of these it will be found by itself
        if going_on is None:
            left.pop(0)
    return _Step(tuple(left), going_on, removed)


def _give_back_pages(connection: sqlite3.Connection) -> bool:
    """Whether it may be worth calling again."""
    before = connection.execute("PRAGMA freelist_count").fetchone()[0]
    for _ in range(min(_VACUUM_STEP, before)):
        connection.execute("PRAGMA incremental_vacuum(1)")  # Python takes one step of it, however many are asked for
    after = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return 0 < int(after) < int(before)
