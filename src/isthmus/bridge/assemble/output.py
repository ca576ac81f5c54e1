"""The items of a response, each with its place: an index that the client is told, and an id made from it."""

from __future__ import annotations

from isthmus.bridge.assemble.emitter import Emitter
from isthmus.protocol.json import JsonObject


class Output:
    __slots__ = ("_items", "emitter", "suffix")

    def __init__(self, response_id: str) -> None:
        self.emitter = Emitter()
        self.suffix = response_id.removeprefix("resp_")
        """What ids of this response have in common: unique without chance."""
        self._items: list[JsonObject | None] = []

    @property
    def items(self) -> list[JsonObject]:
        """Those that are finished, in their order."""
        return [item for item in self._items if item is not None]

    def place(self, prefix: str) -> tuple[str, int]:
        """A new item's id and index."""
        index = len(self._items)
        self._items.append(None)
        return f"{prefix}_{self.suffix}_{index}", index

    def put(self, index: int, item: JsonObject) -> None:
        self._items[index] = item

    def add_whole(self, prefix: str, item: JsonObject, *, opened: JsonObject, steps: tuple[str, ...] = ()) -> None:
        """An item that comes as one piece: announced, told step by step if it has steps, done."""
        id, index = self.place(prefix)
        self.emitter.emit(
            "response.output_item.added", output_index=index, item={**opened, "id": id, "status": "in_progress"}
        )
        for step in steps:
            self.emitter.emit(step, item_id=id, output_index=index)
        done = {**item, "id": id, "status": "completed"}
        self.emitter.emit("response.output_item.done", output_index=index, item=done)
        self.put(index, done)
