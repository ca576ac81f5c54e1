"""What has been told of the upstream's output items, and how whole ones are read. Odd types never raise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isthmus.bridge.deltas import PartKind
from isthmus.bridge.dialects.reports import objects, text_of
from isthmus.protocol.items import Phase
from isthmus.protocol.json import JsonObject


@dataclass(slots=True, eq=False)
class ToldPart:
    kind: PartKind
    index: Any = None  # the vendor's own number; `None` where it gives none
    pieces: list[str] = field(default_factory=list)
    cited: int = 0
    opened: bool = False  # whether a delta has opened it: words do, an empty part has to be said

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def say(self, text: str) -> None:
        self.opened = True
        self.pieces.append(text)


@dataclass(slots=True, eq=False)
class Told:
    kind: str
    id: str = ""
    phase: Phase | None = None
    slot: int | None = None  # the decoder's key of a call
    hosted: int | None = None  # the decoder's key of a tool that the provider runs itself
    closed: bool = False
    pieces: list[str] = field(default_factory=list)  # a call's own text
    parts: list[ToldPart] = field(default_factory=list)
    left: int = 0  # how many parts are over, because something else has spoken since

    def drop_unsaid(self) -> None:
        """A part that was announced, and nothing said: its words will come with the whole item."""
        if self.parts and not self.parts[-1].opened:
            self.parts.pop()

    def open_part(self, kind: PartKind) -> ToldPart | None:
        """The part that speaks, if it is of this kind."""
        last = self.parts[-1] if len(self.parts) > self.left else None
        return last if last is not None and last.kind == kind else None


class ToldItems:
    """All items of one answer, found again by whatever the vendor says of them."""

    def __init__(self) -> None:
        self._items: list[Told] = []
        self._by_index: dict[int, Told] = {}
        self._by_id: dict[str, Told] = {}

    def find(self, event: JsonObject, kind: str, item: JsonObject | None = None) -> Told:
        """The item that an event is about or brings: known by its index or id, the newest of its kind, or new."""
        index = event.get("output_index")
        told = self._by_index.get(index) if type(index) is int else None
        if told is None:
            id = text_of(event.get("item_id") if item is None else item.get("id"))
            told = self._by_id.get(id)
            guess = item is None and type(index) is not int and self._items
            if told is None and guess and self._items[-1].kind in (kind, ""):
                told = self._items[-1]
            if told is None:
                told = Told(kind, id)
                self._items.append(told)
                if type(index) is int:
                    self._by_index[index] = told
                if id:
                    self._by_id[id] = told
        told.kind = told.kind or kind  # deltas that came before the item itself did not know what it is
        return told

    def match(self, output: Any) -> list[tuple[Told, JsonObject]]:
        """The items of a final object, each with what was told of it: ids may change, and items go missing."""
        left = list(self._items)
        pairs: list[tuple[Told, JsonObject]] = []
        for index, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                kind, id = text_of(item.get("type")), text_of(item.get("id"))
                likely = (self._by_id.get(id), self._by_index.get(index), *left)
                told = next((each for each in likely if each in left and each.kind == kind), None)
                if told is not None:
                    left.remove(told)
                pairs.append((told or Told(kind, id), item))
        return pairs


def read_parts(item: JsonObject) -> list[tuple[PartKind, JsonObject]]:
    """All parts of a finished message or reasoning item, in the order in which they are told."""
    usual: PartKind = "reasoning_text" if item.get("type") == "reasoning" else "output_text"
    summary, content = objects(item.get("summary")), objects(item.get("content"))
    told: list[tuple[PartKind, JsonObject]] = [("summary_text", part) for part in summary]
    return told + [("refusal" if part.get("type") == "refusal" else usual, part) for part in content]


def text_of_part(part: JsonObject) -> str:
    return text_of(part.get("refusal" if part.get("type") == "refusal" else "text"))
