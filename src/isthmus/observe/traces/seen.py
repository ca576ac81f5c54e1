"""Pieces of bodies that came by lately: an agent sends its instructions, tools and past items again with every turn.

In: where a piece stands, and its bytes. Out: the `Piece`, if the same bytes stood there before. Bounded by number and
by bytes. There are two tables: what is asked for moves to the newer one, and when that is full it becomes the older
one, whose own pieces are forgotten. Both the loop and the thread that writes come by here: each step is one of a
`dict`.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

_T = TypeVar("_T")

MOST_SEEN: Final = 4_096
"""Pieces that are remembered."""
MOST_SEEN_BYTES: Final = 4_000_000
"""Bytes of these pieces in all."""
_LARGEST: Final = 1 / 8
"""Share of these bytes that one piece may take, once there is no room for all."""

Key = tuple[str, bytes]
"""The path of a piece, and its bytes."""


class Seen(Generic[_T]):
    __slots__ = ("_held", "_largest", "_most", "_most_bytes", "_new", "_old", "find", "recall")

    def __init__(self, most: int = MOST_SEEN, most_bytes: int = MOST_SEEN_BYTES) -> None:
        self._most, self._most_bytes = most // 2, most_bytes // 2
        self._largest = most_bytes * _LARGEST
        self._new: dict[Key, _T] = {}
        self._old: dict[Key, _T] = {}
        self._held = 0
        """Bytes in the newer table."""
        self.find = self._new.get
        """A piece, if it is in the newer table: without an instruction of Python. And …"""
        self.recall = self._old.pop
        """… one that is not there, from the older one; whoever found it notes it."""

    def note(self, key: Key, piece: _T) -> None:
        path, data = key
        new, held = self._new, self._held + len(path) + len(data)
        if held > self._most_bytes or len(new) >= self._most:
            held -= self._held
            if held > self._largest:
                return
            self._old, self._new = new, (new := {})
            self.find, self.recall = new.get, self._old.pop
        new[key], self._held = piece, held

    @property
    def held(self) -> tuple[int, int]:
        """Pieces, and their bytes."""
        tables = (self._new, self._old)
        return sum(map(len, tables)), sum(len(path) + len(data) for table in tables for path, data in table)
