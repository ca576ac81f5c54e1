"""What to forget first, so that no kept turn loses a turn it builds on.

In: every stored turn as (key, parent, created_at, unfinished). Out: groups, longest unused first. A group is a
branch that ends in its newest turn; removing whole groups in this order never breaks a chain that stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Row(Generic[K]):
    key: K
    parent: K | None
    created_at: float
    unfinished: bool


@dataclass(frozen=True, slots=True)
class Branch(Generic[K]):
    last_used: float
    keys: tuple[K, ...]
    """Newest first: a turn always comes before the one it builds on."""


def plan_branches(rows: Iterable[Row[K]]) -> list[Branch[K]]:
    """Branches that may be removed; those that end in an unfinished turn are left out."""
    by_key = {row.key: row for row in rows}
    taken: set[K] = set()
    branches: list[Branch[K]] = []
    # The newest turn claims all its ancestors, then the next newest, and so on; of equal times the later row is newer.
    newest_first = sorted(by_key.values(), key=_last_used)
    newest_first.reverse()
    for row in newest_first:
        keys: list[K] = []
        at: Row[K] | None = row
        while at is not None and at.key not in taken:
            taken.add(at.key)
            keys.append(at.key)
            at = by_key.get(at.parent) if at.parent is not None else None
        if keys and not math.isinf(_last_used(row)):
            branches.append(Branch(row.created_at, tuple(keys)))
    branches.reverse()
    return branches


def _last_used(row: Row[K]) -> float:
    return math.inf if row.unfinished else row.created_at
