"""What receivers are told of the end of a background response: one notice for each that wants to know.

In: the id, owner and last status of a response. Out: notices, to be written with that status in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from isthmus.ports import Notice

_ENDS: Final = ("completed", "failed", "cancelled", "incomplete")
_encode: Final = msgspec.json.Encoder().encode


class Announcer:
    """Without receivers it says nothing."""

    def __init__(
        self,
        receivers: Mapping[str, frozenset[str]] | None = None,
        *,
        owners: Mapping[str, frozenset[str]] | None = None,
        most: int = 10_000,
        now: Callable[[], float] = lambda: 0.0,
        new_id: Callable[[str], str] = lambda prefix: prefix,
    ) -> None:
        """`receivers`: name → the events that it wants, empty: all. `owners`: name → whose responses it hears of,
        empty, or not named: everybody's. `most`: how many notices may wait for one."""
        self._receivers = receivers or {}
        self._owners = owners or {}
        self._most = most
        self._now = now
        self._new_id = new_id
        self.queued: Callable[[], None] = lambda: None
        """To be called when notices were written: somebody may be waiting for them."""

    def notices(self, id: str, owner: str, status: str) -> tuple[Notice, ...]:
        kind = f"response.{status}"
        wanted = [name for name, events in self._receivers.items() if not events or kind in events]
        wanted = [name for name in wanted if not (owners := self._owners.get(name)) or owner in owners]
        if not wanted or status not in _ENDS:
            return ()
        event = {
            "id": self._new_id("evt"),
            "object": "event",
            "created_at": int(self._now()),
            "type": kind,
            "data": {"id": id},
        }
        body = _encode(event)
        return tuple(Notice(self._new_id("wh"), name, kind, id, body, owner, self._most) for name in wanted)
