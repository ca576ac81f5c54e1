"""Vendor state that arrives in fragments → the array that a whole reply would have held.

A streamed `reasoning_details` comes as many small entries that share their index (and id); sent back one by
one they would not be what the model said. Entries of one delta are the vendor's own and stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_GROWING: Final = ("text", "summary", "data")


def join_fragments(deltas: Iterable[list[Any]]) -> list[Any]:
    """All entries in order; the first one of a delta may go on with the last one of the delta before."""
    joined: list[Any] = []
    pieces: dict[str, list[str]] = {}
    for entries in deltas:
        for number, entry in enumerate(entries):
            if number == 0 and joined and _continues(joined[-1], entry):
                _grow(joined[-1], entry, pieces)
                continue
            _settle(joined, pieces)
            # A copy: the last one grows.
            joined.append(dict(entry) if isinstance(entry, dict) else entry)
    _settle(joined, pieces)
    return joined


def _grow(last: dict[str, Any], more: dict[str, Any], pieces: dict[str, list[str]]) -> None:
    """Text is collected, not appended: a long stream would copy it once for each of its fragments."""
    for name, value in more.items():
        if name in _GROWING and isinstance(value, str) and isinstance(last.get(name), str):
            pieces.setdefault(name, [last[name]]).append(value)
        elif value is not None:
            pieces.pop(name, None)
            last[name] = value


def _settle(joined: list[Any], pieces: dict[str, list[str]]) -> None:
    for name, texts in pieces.items():
        joined[-1][name] = "".join(texts)
    pieces.clear()


def _continues(last: Any, first: Any) -> bool:
    if not isinstance(last, dict) or not isinstance(first, dict) or first.get("index") is None:
        return False
    if any(last.get(name) != first.get(name) for name in ("index", "type")):
        return False
    return not (last.get("id") and first.get("id") and last["id"] != first["id"])
