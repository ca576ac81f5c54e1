"""A text that comes in pieces: whether it is one whole JSON value by now, in time linear in what came.

Vendors make us ask at every fragment, and a decoder reads the whole text each time. So it is asked only when the text
has doubled since the last time. In between each piece is looked at once, and only if somebody asks: brackets are
counted, strings are skipped, and where the last bracket closes the value is read, once. Whatever comes behind that
makes the text no JSON for ever.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from isthmus.protocol.json import is_json

_MARKS: Final = re.compile(r'["\\{}\[\]]')
_SPACE: Final = " \t\r\n"
_ENCLOSED: Final = ("{", "[", '"')
_LONGEST_SCALAR: Final = 400
"""Characters of a number or a word that are tried each time: no bracket tells where it ends."""


class Pieces(list[str]):
    """A list, so that the hot path appends without a call of ours."""

    __slots__ = (
        "_asked",
        "_depth",
        "_escaped",
        "_first",
        "_quoted",
        "_scanned",
        "_seen",
        "_size",
        "_state",
        "_tried",
        "_whole",
    )

    def __init__(self, *pieces: str) -> None:
        super().__init__(pieces)
        self._seen = self._size = 0  # how many pieces are counted, and how long they are
        self._asked = 0  # how many there were when it was asked last
        self._tried = 0  # how long the text was when a decoder was asked last
        self._scanned = self._depth = 0  # how many pieces were looked into, and how many of their brackets are open
        self._first = ""
        self._quoted = self._escaped = self._whole = False
        self._state: Literal["open", "closed", "judged"] = "open"

    @property
    def text(self) -> str:
        """Put together: for when it is needed, not for questions."""
        return "".join(self)

    @property
    def size(self) -> int:
        for piece in self[self._seen :]:
            self._size += len(piece)
            self._first = self._first or piece.lstrip(_SPACE)[:1]
        self._seen = len(self)
        return self._size

    @property
    def whole(self) -> bool:
        size = self.size
        if self._asked == self._seen or not self._first:
            return self._whole
        self._asked = self._seen
        if self._first not in _ENCLOSED:
            self._whole = size <= _LONGEST_SCALAR and is_json(self.text)
        elif self._state == "open" and size >= 2 * self._tried:
            self._tried, self._whole = size, is_json(self.text)
        else:
            self._look()
        return self._whole

    def _look(self) -> None:
        """Into what is new."""
        for piece in self[self._scanned :]:
            rest = piece[self._scan(piece) :] if self._state == "open" else piece
            if self._state != "open" and rest.strip(_SPACE):
                self._state = "judged"
                self._whole = False
        self._scanned = len(self)
        if self._state == "closed":
            self._state, self._whole = "judged", is_json(self.text)
        elif self._state == "open":
            self._whole = False

    def _scan(self, piece: str) -> int:
        """Up to the end of the piece, or of the value."""
        at = 1 if self._escaped and piece else 0
        self._escaped = self._escaped and not piece
        while found := _MARKS.search(piece, at):
            mark, at = found[0], found.end()
            if self._quoted:
                if mark == "\\":
                    self._escaped = at == len(piece)
                    at += 1
                elif mark == '"':
                    self._quoted = False
            elif mark == '"':
                self._quoted = True
            elif mark != "\\":
                self._depth += 1 if mark in "{[" else -1
            if not self._quoted and self._depth <= 0:
                self._state = "closed"
                return at
        return len(piece)
