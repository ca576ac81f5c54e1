"""JSON for people: what fits on a line stays on a line, long strings are cut and say by how much.

In: any JSON value and a width. Out: coloured lines, and how many strings were cut. With `full` nothing is cut, and the
lines are JSON again, however long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from rich.text import Text

_INDENT: Final = 2
_LIMITS: Final = (160, 120, 96, 80, 64, 48)
"""How long a string may be, tried in turn until the line fits; shorter ones would say too little."""


@dataclass(slots=True)
class JsonView:
    width: int
    full: bool = False
    cut: int = 0
    """How many strings were cut."""
    _lines: list[Text] = field(default_factory=list)

    def render(self, value: Any) -> Text:
        self._lines, self.cut = [], 0
        self._add(Text(), value, 0, "")
        return Text("\n").join(self._lines)

    def _add(self, start: Text, value: Any, depth: int, end: str) -> None:
        """Write `value` behind `start` (its key, or nothing): on one line if it fits, else opened up."""
        indent = " " * (depth * _INDENT)
        limit = self._limit(value, self.width - len(indent) - len(start) - len(end))
        if limit is not None:
            self._lines.append(Text.assemble(indent, start, self._inline(value, limit), (end, "dim")))
            return
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        self._lines.append(Text.assemble(indent, start, (opening, "dim")))
        last = len(value) - 1
        for index, (key, inner) in enumerate(_entries(value)):
            self._add(_key(key), inner, depth + 1, "," if index < last else "")
        self._lines.append(Text.assemble(indent, (closing + end, "dim")))

    def _limit(self, value: Any, room: int) -> int | None:
        """How long strings may be for `value` to fit on the line; `None` where it has to be opened up."""
        limits: tuple[int, ...] = (_ENDLESS,) if self.full else _LIMITS
        if isinstance(value, str) and not self.full:
            limits = (*_LIMITS, 32, 16)  # a string cannot be opened up
        fitting = next((limit for limit in limits if _length(value, limit, room) <= room), None)
        if fitting is None and not (isinstance(value, dict | list) and value):
            return limits[-1]  # nothing to open up
        return fitting

    def _inline(self, value: Any, limit: int) -> Text:
        match value:
            case dict() | list() if value:
                inner = [Text.assemble(_key(key), self._inline(entry, limit)) for key, entry in _entries(value)]
                opening, closing = "{}" if isinstance(value, dict) else "[]"
                return Text.assemble((opening, "dim"), Text(", ").join(inner), (closing, "dim"))
            case str() if len(value) > limit:
                self.cut += 1
                return Text.assemble((_encode(value[:limit]), "green"), (_note(value, limit), "dim"))
            case str():
                return Text(_encode(value), "green")
            case _:
                return Text(_encode(value), "magenta")


_ENDLESS: Final = 1 << 62


def _entries(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from ((None, entry) for entry in value)


def _length(value: Any, limit: int, room: int) -> int:
    """The length on one line; counting stops where there is no room left."""
    match value:
        case dict() | list() if value:
            total = 0
            for key, entry in _entries(value):
                total += 2 + (0 if key is None else len(_encode(key)) + 2) + _length(entry, limit, room)
                if total > room:
                    break
            return total
        case str() if len(value) > limit:
            return len(_encode(value[:limit])) + len(_note(value, limit))
        case _:
            return len(_encode(value))


def _key(key: str | None) -> Text:
    return Text() if key is None else Text.assemble((_encode(key), "cyan"), (": ", "dim"))


def _note(value: str, limit: int) -> str:
    return f" …+{len(value) - limit:,}"


def _encode(value: Any) -> str:
    """JSON leaves a few control characters as they are; a terminal must not get them."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(value).decode())


_CONTROLS: Final = re.compile(r"[\x7f-\x9f]")
