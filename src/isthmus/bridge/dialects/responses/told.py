"""What has been told of one upstream output item, and how its parts are read. Odd types never raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.dialects.chat.logprobs import read_logprobs
from isthmus.bridge.dialects.citations import read_citation
from isthmus.protocol.items import Annotation, Logprob, Phase
from isthmus.protocol.json import JsonObject

PartKind = Literal["output_text", "refusal", "reasoning_text", "summary_text"]

_encode_json: Final = msgspec.json.Encoder().encode


class ToldPart:
    """One part of a message or reasoning item on its way through the stream."""

    __slots__ = ("_pieces", "cited", "index", "kind", "left", "opened")

    def __init__(self, kind: PartKind, index: Any) -> None:
        self.kind: PartKind = kind
        self.index = index
        """The vendor's own number; `None` where it gives none."""
        self.cited = 0
        self.opened = False
        """Whether a delta has opened it: words do, an empty part has to be said."""
        self.left = False
        """Whether something else has spoken since: it is over then."""
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def say(self, text: str) -> None:
        self.opened = True
        self._pieces.append(text)


class Told:
    """One output item on its way through the stream."""

    __slots__ = ("_pieces", "closed", "custom", "hosted", "id", "kind", "parts", "phase", "slot")

    def __init__(self, kind: str, id: Any = "") -> None:
        self.kind = kind
        self.id = text_of(id)
        self.phase: Phase | None = None
        self.slot = -1
        """The decoder's key of a call; -1 for anything else."""
        self.custom = False
        self.hosted = -1
        """The decoder's key of a tool that the provider runs itself."""
        self.closed = False
        self.parts: list[ToldPart] = []
        self._pieces: list[str] = []

    def say(self, text: str) -> None:
        """More of a call's own text."""
        self._pieces.append(text)

    @property
    def said(self) -> str:
        return "".join(self._pieces)

    def part(self, kind: PartKind, number: int) -> ToldPart | None:
        """The part with this number among those of its kind."""
        own = [part for part in self.parts if part.kind == kind]
        return own[number] if number < len(own) else None

    def spoken(self, kind: PartKind) -> str:
        return "".join(part.text for part in self.parts if part.kind == kind)


class WholePart(msgspec.Struct, frozen=True):
    """A part as the finished item has it."""

    kind: PartKind
    text: str
    citations: list[Annotation] = []
    logprobs: list[Logprob] | None = None


def read_parts(item: JsonObject) -> list[WholePart]:
    """All parts of a finished message or reasoning item, in the order in which they are told."""
    found = [_read_part(part, "summary_text") for part in _list(item.get("summary"))]
    usual: PartKind = "reasoning_text" if item.get("type") == "reasoning" else "output_text"
    found += [_read_part(part, usual) for part in _list(item.get("content"))]
    return [part for part in found if part is not None]


def _read_part(part: Any, usual: PartKind) -> WholePart | None:
    if not isinstance(part, dict):
        return None
    if part.get("type") == "refusal":
        return WholePart("refusal", text_of(part.get("refusal")))
    logprobs = read_logprobs(part["logprobs"]) if part.get("logprobs") else None
    return WholePart(usual, text_of(part.get("text")), annotations_of(_list(part.get("annotations"))), logprobs)


def read_phase(given: Any) -> Phase | None:
    """`commentary` or `final_answer`: what clients know."""
    return given if given in ("commentary", "final_answer") else None


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def encode_inside(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return _encode_json(text).decode()[1:-1]


def annotations_of(given: Sequence[Any]) -> list[Annotation]:
    """Citations that clients can read; a web citation always gets all of its fields."""
    return [_annotation(each) for each in given if isinstance(each, dict) and isinstance(each.get("type"), str)]


def _annotation(given: JsonObject) -> JsonObject:
    return read_citation(given) if given["type"] == "url_citation" else given


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
