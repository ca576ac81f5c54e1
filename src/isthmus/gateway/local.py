"""Turns that one connection alone knows: what a response with `store: false` leaves for the one that continues it.

Of each lane the last response is kept, whole: what was said before it, its input and its output. Nothing is written
down, and the end of the connection is the end of it. All of it is bounded in bytes, for one connection and for all
together; what was kept the longest ago goes first, and whoever continues it is told `previous_response_not_found`.
"""

from __future__ import annotations

from typing import Final

import msgspec

Items = tuple[tuple[bytes, bool], ...]
"""The items of a conversation, each with whether it was ours to say, and not yet when the last turn began."""


class _Turn(msgspec.Struct, frozen=True):
    id: str
    items: Items
    size: int


_NOTHING: Final = 1_000
"""Bytes that a turn takes besides its items, and that many for each hundred of them."""


class LocalTurns:
    """Those of all connections."""

    def __init__(self, most_each: int, most: int) -> None:
        self.most_each = most_each
        self._most = most
        self._held: dict[tuple[Connected, str], int] = {}
        """Bytes of each lane, the oldest first."""
        self.size = 0

    def connect(self) -> Connected:
        return Connected(self)

    def count(self, who: Connected, lane: str, size: int) -> None:
        """This lane has so many bytes now."""
        before = self._held.pop((who, lane), 0)
        self.size += size - before
        if size:
            self._held[who, lane] = size
        while self.size > self._most:
            oldest, name = next(iter(self._held))
            oldest.forget(name)


class Connected:
    """Those of one connection, by lane."""

    def __init__(self, all: LocalTurns) -> None:
        self._all = all
        self._lanes: dict[str, _Turn] = {}
        """The last kept is last."""

    @property
    def size(self) -> int:
        return sum(turn.size for turn in self._lanes.values())

    def find(self, id: str) -> Items | None:
        """The items up to and with this response; any lane may continue the last one of any other."""
        return next((turn.items for turn in self._lanes.values() if turn.id == id), None)

    def keep(self, lane: str, id: str, items: Items) -> None:
        """The lane's last response; the one before it is known no more."""
        self.forget(lane)
        size = sum(len(raw) for raw, _ in items) + _NOTHING + len(items) * (_NOTHING // 100)
        if size > self._all.most_each:
            return
        self._lanes[lane] = _Turn(id, items, size)
        while self.size > self._all.most_each:
            self.forget(next(iter(self._lanes)))
        self._all.count(self, lane, size)

    def evict(self, lane: str, id: str) -> None:
        """What continued this response failed: it must be sent anew. Another lane's is left alone."""
        if lane in self._lanes and self._lanes[lane].id == id:
            self.forget(lane)

    def forget(self, lane: str) -> None:
        if self._lanes.pop(lane, None) is not None:
            self._all.count(self, lane, 0)

    def close(self) -> None:
        for lane in list(self._lanes):
            self.forget(lane)


class Lane(msgspec.Struct, frozen=True):
    """Where a response is asked for: one lane of one connection."""

    turns: Connected
    name: str = ""
