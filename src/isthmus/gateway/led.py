"""What a request leads to: stored turns and items, which no body brought, counted by whoever counts bodies.

How much it is turns out when the store was asked. By then thousands may have been let in, with a few bytes each, so the
one who lets them in leaves word here, for the task that serves one, how to count more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token

Count = Callable[[int], None]
"""Counts so many bytes more; raises where there is no room for them."""

Before = Token["Count | None"]

_count: ContextVar[Count | None] = ContextVar("count", default=None)


def count_by(count: Count) -> Before:
    """What the request of this task leads to is counted so, until it is as before."""
    return _count.set(count)


def count_as_before(before: Before) -> None:
    _count.reset(before)


def leads_to(size: int) -> None:
    """So many bytes were read for the request of this task; raises where that is too much."""
    count = _count.get()
    if count is not None and size > 0:
        count(size)
