"""Events that wait until somebody has looked at the whole answer; then they are told as if nobody had.

What says nothing of the answer (`created`, `in_progress`, signs of life) goes out at once, so that the client knows
that we are there. Numbers are given when an event is told: without a gap, in the order in which the client reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from isthmus.conduct.around import Recorder
from isthmus.protocol.events import Event

_EMPTY: Final = ("response.created", "response.in_progress")


class Held:
    def __init__(self, recorder: Recorder | None = None) -> None:
        """`recorder` takes note of what is told, when it is."""
        self.told = 0
        self._recorder = recorder
        self._waiting: list[Event] = []

    def take(self, events: Sequence[Event]) -> list[Event]:
        """Those that may be told now; the others wait."""
        now: list[Event] = []
        for event in events:
            (now if event["type"] in _EMPTY and not self._waiting else self._waiting).append(event)
        return self.tell(now) if now else now

    def tell(self, events: Sequence[Event]) -> list[Event]:
        told: list[Any] = [{**event, "sequence_number": self.told + place} for place, event in enumerate(events)]
        self.told += len(told)
        if self._recorder is not None:
            self._recorder.add(told)
        return told

    def release(self, last: Sequence[Event]) -> list[Event]:
        """Everything, with the end."""
        waiting, self._waiting = self._waiting, []
        return self.tell([*waiting, *last])

    def replace(self, events: Sequence[Event]) -> list[Event]:
        """Another answer in its place: all of its events, of which the client has those that say nothing."""
        self._waiting = []
        known = self.told > 0
        return self.tell([event for event in events if not (known and event["type"] in _EMPTY)])
