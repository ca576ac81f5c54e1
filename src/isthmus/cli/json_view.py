"""JSON for people: what fits on a line stays on a line, long strings are cut and say by how much.

In: any JSON value and a width. Out: coloured lines, and whether something was cut. It stays JSON as long as nothing is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from rich.text import Text

STRING_LIMIT: Final = 96
_INDENT: Final = 2


@dataclass(slots=True)
class JsonView:
    width: int
    string_limit: int | None = STRING_LIMIT
    """Longer strings are cut; `None` shows all."""
    cut: int = 0
    """How many strings were cut."""
    _lines: list[Text] = field(default_factory=list)

    def render(self, value: Any) -> Text:
        self._lines, self.cut = [], 0
        self._add(Text(), value, 0, "")
        return Text("\n").join(self._lines)

    def _add(self, start: Text, value: Any, depth: int, end: str) -> None:
        """Write `value` behind `start` (a key, or nothing): on one line if it fits, else opened up."""
        indent = " " * (depth * _INDENT)
        if not isinstance(value, dict | list) or not value or self._fits(start, value, depth, end):
            self._lines.append(Text.assemble(indent, start, self._inline(value), (end, "dim")))
            return
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        self._lines.append(Text.assemble(indent, start, (opening, "dim")))
        entries = value.items() if isinstance(value, dict) else ((None, inner) for inner in value)
        last = len(value) - 1
        for index, (key, inner) in enumerate(entries):
            self._add(self._key(key), inner, depth + 1, "," if index < last else "")
        self._lines.append(Text.assemble(indent, (closing + end, "dim")))

    def _fits(self, start: Text, value: Any, depth: int, end: str) -> bool:
        room = self.width - depth * _INDENT - len(start) - len(end)
        return _flat_length(value, room, self.string_limit) <= room

    def _inline(self, value: Any) -> Text:
        match value:
            case dict() if value:
                inner = [Text.assemble(self._key(key), self._inline(entry)) for key, entry in value.items()]
                return Text.assemble(("{", "dim"), Text(", ").join(inner), ("}", "dim"))
            case list() if value:
                return Text.assemble(("[", "dim"), Text(", ").join(self._inline(entry) for entry in value), ("]", "dim"))
            case str():
                return self._string(value)
            case _:
                return Text(_encode(value), "magenta")

    def _key(self, key: str | None) -> Text:
        return Text() if key is None else Text.assemble((_encode(key), "cyan"), (": ", "dim"))

    def _string(self, value: str) -> Text:
        if self.string_limit is None or len(value) <= self.string_limit:
            return Text(_encode(value), "green")
        self.cut += 1
        return Text.assemble((_encode(_cut(value, self.string_limit)), "green"), (_note(value, self.string_limit), "dim"))


def _flat_length(value: Any, room: int, limit: int | None) -> int:
    """The length on one line; the count stops as soon as there is no room."""
    match value:
        case str():
            if limit is None or len(value) <= limit:
                return len(_encode(value))
            return len(_encode(_cut(value, limit))) + len(_note(value, limit))
        case dict() | list():
            total = 2
            for entry in value.items() if isinstance(value, dict) else value:
                if isinstance(value, dict):
                    total += len(_encode(entry[0])) + 4 + _flat_length(entry[1], room, limit)
                else:
                    total += 2 + _flat_length(entry, room, limit)
                if total > room + 2:
                    break
            return total - 2 if value else total
        case _:
            return len(_encode(value))


def _cut(value: str, limit: int) -> str:
    return value[:limit]


def _note(value: str, limit: int) -> str:
    return f" …+{len(value) - limit:,}"


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()
