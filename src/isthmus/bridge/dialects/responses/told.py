"""What has been told of one upstream output item, and how its parts are read. Odd types never raise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from isthmus.protocol.json import JsonObject

_encode_json: Final = msgspec.json.Encoder().encode


class Told:
    """One output item on its way through the stream."""

    __slots__ = ("_said", "annotated", "closed", "custom", "kind", "part", "slot")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.slot = -1
        """The decoder's key of a call; -1 for anything else."""
        self.custom = False
        self.annotated = 0
        self.part: Any = None
        """Which part of a summary spoke last."""
        self.closed = False
        self._said: dict[str, list[str]] = {}

    def say(self, what: str, text: str) -> None:
        self._said.setdefault(what, []).append(text)

    def said(self, what: str) -> str:
        return "".join(self._said.get(what, ()))

    def missing(self, what: str, parts: Sequence[JsonObject], field: str) -> Iterator[tuple[JsonObject, str]]:
        """What the whole parts say beyond what was streamed. What was said otherwise cannot be taken back."""
        said = self.said(what)
        for part in parts:
            whole = text_of(part.get(field))
            if said.startswith(whole):
                said = said[len(whole) :]
            elif whole.startswith(said):
                yield part, whole[len(said) :]
                said = ""
            else:
                return


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts_of(parts: Any) -> list[str]:
    given = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [text for text in given if isinstance(text, str) and text]


def encode_inside(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return _encode_json(text).decode()[1:-1]


def annotations_of(given: Sequence[Any]) -> list[JsonObject]:
    """Citations that clients can read; a web citation always gets all of its fields."""
    return [_annotation(each) for each in given if isinstance(each, dict) and isinstance(each.get("type"), str)]


def _annotation(given: JsonObject) -> JsonObject:
    if given["type"] != "url_citation":
        return given
    return {
        "type": "url_citation",
        "url": text_of(given.get("url")),
        "title": text_of(given.get("title")),
        "start_index": _position(given.get("start_index")),
        "end_index": _position(given.get("end_index")),
    }


def _position(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
