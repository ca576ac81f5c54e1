"""Forgetting what was not used for longest, a few rows at a time.

The same steps as in the SQLite store: a reader looks for turns that nothing builds on, the longest unused first; a
write removes them, and behind them what only they needed. Each write is one short transaction under one lock, so that
of several replicas one at a time is at it; the others find nothing left.

How much is kept is measured once, and what is removed is counted: the size of the files tells nothing, because
PostgreSQL gives room back only to itself.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from isthmus.ports import Pruned, conversation_lease
from isthmus.store.postgres import leases, reads, writes
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.conversation_rows import find_unused
from isthmus.store.postgres.conversation_writes import remove
from isthmus.store.postgres.locks import PRUNING, lock
from isthmus.store.postgres.pool import Pool

_STEP: Final = 50
Stamp = tuple[float, int]
"""When a turn was made, and its key: of equal times the later row is newer."""


@dataclass(frozen=True, slots=True)
class _Step:
    left: tuple[Stamp, ...] = ()
    """Ends of branches, the longest unused first."""
    going_on: int | None = None
    """The turn to go on with in the branch of the first of them."""
    removed: int = 0
    enough: bool = False
    excess: int = 0
    """Bytes that are still too many."""


async def prune(
    pool: Pool,
    *,
    older_than: float | None,
    max_bytes: int | None,
    conversations: float | None = None,
    now: Callable[[], float | None],
) -> Pruned:
    before, removed = await pool.read(reads.measure_bytes), 0
    ended = 0 if conversations is None else await _end_unused(pool, conversations, now)
    at, step = (-math.inf, 0), _Step()
    bound = older_than if max_bytes is None else None
    while not step.enough:
        ends = await pool.read(partial(reads.find_ends, after=at, older_than=bound, count=_STEP))
        if not ends:
            break
        excess = 0 if max_bytes is None else await pool.read(reads.measure_bytes) - max_bytes
        at, step = ends[-1], _Step(tuple(ends), excess=excess)
        while step.left and not step.enough:
            step = await pool.write(
                partial(_remove_some, step=step, older_than=older_than, weigh=max_bytes is not None)
            )
            removed += step.removed
    await pool.write(lambda connection: leases.sweep(connection, now()))
    return Pruned(removed, max(0, before - await pool.read(reads.measure_bytes)), ended)


async def drop_events(pool: Pool, older_than: float) -> None:
    """Let the events of finished responses go that were made before then."""
    after = 0
    while keys := await pool.read(partial(reads.find_streams, after=after, older_than=older_than, count=_STEP)):
        await pool.write(partial(writes.drop_streams, keys=keys))
        after = keys[-1]


async def _end_unused(pool: Pool, older_than: float, now: Callable[[], float | None]) -> int:
    """Conversations, one at a time: each may have thousands of items."""

    def end_one(connection: Connection) -> bool:
        lock(connection, PRUNING)
        while (found := find_unused(connection, older_than, now())) is not None:
            lock(connection, conversation_lease(found[1]))
            if find_unused(connection, older_than, now()) == found:  # nobody has used it while we waited
                remove(connection, found[0])
                return True
        return False

    ended = 0
    while await pool.write(end_one):
        ended += 1
    return ended


def _remove_some(connection: Connection, step: _Step, older_than: float | None, weigh: bool) -> _Step:
    """Remove a bounded number of turns, and say what is left to do."""
    lock(connection, PRUNING)
    left, going_on, removed, excess = list(step.left), step.going_on, 0, step.excess
    while left and removed < _STEP:
        newest = left[0]
        if going_on is None:
            too_old = older_than is not None and newest[0] < older_than
            if not too_old and excess <= 0:
                return _Step(removed=removed, enough=True)
        count, freed, going_on, end = _remove_branch(connection, going_on or newest[1], newest, _STEP - removed, weigh)
        removed, excess = removed + count, excess - freed
        if end is not None and end < left[-1]:
            insort(left, end)  # its turn comes; behind the last of these it will be found by itself
        if going_on is None:
            left.pop(0)
    return _Step(tuple(left), going_on, removed, excess=excess)


def _remove_branch(
    connection: Connection, key: int, newest: Stamp, most: int, weigh: bool
) -> tuple[int, int, int | None, Stamp | None]:
    """Remove a turn that nothing builds on, then the one that it was built on, and so on: as far as they are finished,
    nothing else needs them, and none is newer than `newest`.

    How many were removed; their bytes, if that is asked (`weigh`); where to go on, after `most` of them; and which
    newer one is now an end itself.
    """
    removed = freed = 0
    while removed < most:
        # Who saves what builds on it holds it: that is not an end. Only under this lock is it known that nobody does.
        held = connection.execute("SELECT key FROM responses WHERE key = %s FOR UPDATE SKIP LOCKED", (key,))
        row = connection.execute(
            "SELECT r.created_at, NOT r.deleted AND r.status IN ('queued', 'in_progress'), parent.key,"
            " EXISTS (SELECT 1 FROM responses AS c WHERE c.previous_id = r.id AND c.key <> r.key)"
            " FROM responses AS r LEFT JOIN responses AS parent ON parent.id = r.previous_id WHERE r.key = %s",
            (key,),
        ).fetchone()
        if row is None or held.fetchone() is None:
            return removed, freed, None, None
        created_at, unfinished, parent, needed = row
        if unfinished or needed:
            return removed, freed, None, None
        if (created_at, key) > newest:
            return removed, freed, None, (created_at, key)
        freed += reads.weigh(connection, key) if weigh else 0
        writes.remove_row(connection, key)
        removed += 1
        if parent is None or parent == key:
            return removed, freed, None, None
        key = parent
    return removed, freed, key, None
