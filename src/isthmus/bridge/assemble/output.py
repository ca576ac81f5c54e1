"""What a response tells: its items, each with an index and an id, and its events, numbered without a gap.

It lives as long as the response, across all attempts to answer. Nothing that was told is changed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from isthmus.protocol.events import Event, SnapshotType
from isthmus.protocol.items import OutputItem
from isthmus.protocol.response import Response, ResponseStatus

# None of them says cancelled: a stream that is cancelled ends as failed.
_ENDS: Final[dict[ResponseStatus, SnapshotType]] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
}


def end_type(status: ResponseStatus) -> SnapshotType:
    """The terminal event of a response with this status."""
    return _ENDS.get(status, "response.failed")


class Output:
    __slots__ = ("_ids", "_items", "events", "sequence", "suffix")

    def __init__(self, response_id: str) -> None:
        self.events: list[Event] = []
        """Told, but not handed out yet."""
        self.sequence = 0
        """The number of the next event."""
        self.suffix = response_id.removeprefix("resp_")
        """What ids of this response have in common: unique without chance."""
        self._items: list[OutputItem | None] = []
        self._ids: set[str] = set()

    @property
    def items(self) -> list[OutputItem]:
        """Those that are finished, in their order."""
        return [item for item in self._items if item is not None]

    def number(self) -> int:
        """The next event's `sequence_number`."""
        number = self.sequence
        self.sequence = number + 1
        return number

    def take(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def place(self, prefix: str, wanted: str = "") -> tuple[str, int]:
        """A new item's id and index; the id is `wanted` unless another item has it."""
        index = len(self._items)
        self._items.append(None)
        id = wanted if wanted and wanted not in self._ids else f"{prefix}_{self.suffix}_{index}"
        self._ids.add(id)
        return id, index

    def put(self, index: int, item: OutputItem) -> None:
        """The item as the response will hold it."""
        self._items[index] = item

    def tell(self, type: SnapshotType, response: Response) -> None:
        """The response as it stands."""
        self.events.append({"type": type, "sequence_number": self.number(), "response": response})

    def end(self, status: ResponseStatus, response: Response) -> None:
        """The terminal event."""
        self.tell(end_type(status), response)

    def added(self, index: int, item: OutputItem) -> None:
        number = self.number()
        self.events.append(
            {"type": "response.output_item.added", "sequence_number": number, "output_index": index, "item": item}
        )

    def done(self, index: int, item: OutputItem) -> None:
        self.put(index, item)
        self.events.append(
            {"type": "response.output_item.done", "sequence_number": self.number(), "output_index": index, "item": item}
        )

    @contextmanager
    def silently(self) -> Iterator[None]:
        """What is told in here is not: the items keep their place in the response."""
        told, sequence = len(self.events), self.sequence
        yield
        del self.events[told:]
        self.sequence = sequence
