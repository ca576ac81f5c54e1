"""Vendor state that arrives in fragments → the array that a whole reply would have held.

A streamed `reasoning_details` comes as many small entries that share their index (and id); sent back one by
one they would not be what the model said. Entries of one delta are the vendor's own and stay apart.
"""

from __future__ import annotations

from typing import Any, Final

_GROWING: Final = ("text", "summary", "data")


def append_fragments(known: list[Any], more: list[Any]) -> list[Any]:
    """`known` with another delta's entries behind it, the first of which may go on with the last."""
    if not known or not more or not _continues(known[-1], more[0]):
        return [*known, *more]
    last, first = known[-1], more[0]
    joined = {**last, **{name: value for name, value in first.items() if value is not None}}
    for name in _GROWING:
        if isinstance(last.get(name), str) and isinstance(first.get(name), str):
            joined[name] = last[name] + first[name]
    return [*known[:-1], joined, *more[1:]]


def _continues(last: Any, first: Any) -> bool:
    if not isinstance(last, dict) or not isinstance(first, dict) or first.get("index") is None:
        return False
    if any(last.get(name) != first.get(name) for name in ("index", "type")):
        return False
    return not (last.get("id") and first.get("id") and last["id"] != first["id"])
