"""What a hook changed: two JSON values in, the places where they differ out. No content is ever told, only where."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

MOST: Final = 16
"""Places that are told of one call; where there are more, the last one told stands for the rest."""


def find_changes(before: Any, after: Any, path: str = "") -> list[str]:
    """`["input[0].content", "metadata.team"]`; empty: nothing was changed."""
    return list(islice(_differ(before, after, path), MOST))


def _differ(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            where = f"{path}.{name}" if path else name
            if name not in before or name not in after:
                yield where
            else:
                yield from _differ(before[name], after[name], where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differ(one, other, f"{path}[{index}]")
    elif type(before) is not type(after) or before != after:
        yield path
