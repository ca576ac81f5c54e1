"""Which drafts are so small that their trace is made at once, by whoever puts them.

To make a small trace takes some 25 µs. To hold on to everything that it is made of until the thread comes to it takes
time as well: the search for garbage looks at it again, and the thread finds nothing of it in its caches. What may take
longer than that (a long history, a long answer, all content) waits for the thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from isthmus.ports import Ended, Planned, Received

SMALL: Final = 16_384
"""Bytes of a request, and characters of an answer."""
_MEMBER: Final = 500
"""What a member of a list counts that nobody looks into, such as an annotation."""


def is_small_request(fact: Received) -> bool:
    return fact.size <= SMALL


def is_small_plan(fact: Planned) -> bool:
    """Nobody knows how long a history is."""
    return not fact.history


def is_small_end(fact: Ended) -> bool:
    return fact.response is None or _length(fact.response["output"]) <= SMALL


def _length(output: Sequence[Mapping[str, Any]]) -> int:
    """Characters of an answer, about: of its items, and of their parts."""
    total = 0
    for item in output:
        for value in item.values():
            if isinstance(value, str):
                total += len(value)
            elif isinstance(value, list):
                for part in value:
                    total += _part_length(part)
    return total


def _part_length(part: Any) -> int:
    if not isinstance(part, dict):
        return len(part) if isinstance(part, str) else _MEMBER
    total = 0
    for value in part.values():
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, list | dict):
            total += _MEMBER * len(value)
    return total
