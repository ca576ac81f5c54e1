"""Where events are numbered: one growing `sequence_number`, one list that the caller drains."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]


class Emitter:
    __slots__ = ("events", "sequence")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.sequence = 0

    def emit(self, type: str, **fields: Any) -> None:
        self.events.append({"type": type, "sequence_number": self.sequence, **fields})
        self.sequence += 1

    def take(self) -> list[Event]:
        events, self.events = self.events, []
        return events
