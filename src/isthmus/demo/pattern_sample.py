"""A short text that matches a regular expression of the kind JSON Schemas carry.

In: the pattern and a least length. Out: a text, or `None` for what it cannot do (look-around, back
references, classes that exclude nearly everything). The first alternative and the fewest repeats win;
to reach the length, every repeat is made longer alike.
"""

from __future__ import annotations

import re
import string
from typing import Final

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.contract.validators import pattern_limits

_CLASSES: Final = {"d": string.digits, "w": string.ascii_lowercase + string.digits + "_", "s": " "}
_PLAIN: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_ALL: Final = string.ascii_lowercase + string.digits + string.ascii_uppercase + "-_ .:/#@" + string.punctuation
_MOST: Final = 1000
LONGEST: Final = 10_000
"""Characters of the longest text that is made, whatever a schema asks for."""


class _Beyond(Exception):
    """A pattern that this sampler cannot follow."""


def sample_pattern(pattern: str, least: int = 0) -> str | None:
    """The shortest of its attempts that matches and is long enough."""
    for longer in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, least):
        try:
            text = _Reader(pattern, longer).read()
            if len(text) >= least and matches(pattern, text):
                return text
        except (_Beyond, RecursionError, OverflowError, ValueError):
            return None
    return None


def matches(pattern: str, text: str) -> bool:
    """As JSON Schema means it. The validator gives up on a pattern that would take for ever; Python's `re` does not."""
    import jsonschema_rs

    try:
        limits = pattern_limits(DEFAULT_BOUNDS.max_regex)
        return bool(jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=limits).is_valid(text))
    except ValueError:
        return False


class _Reader:
    """One pass over a pattern, writing as it reads."""

    def __init__(self, pattern: str, longer: int) -> None:
        self._pattern = pattern
        self._longer = longer
        self._at = 0

    def read(self) -> str:
        text = self._alternatives()
        if self._at < len(self._pattern):
            raise _Beyond
        return text

    def _alternatives(self) -> str:
        first = self._sequence()
        while self._take("|"):
            self._sequence()
        return first

    def _sequence(self) -> str:
        written: list[str] = []
        size = 0
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            atom = self._atom()
            repeats = self._repeats()
            size += len(atom) * repeats
            if size > LONGEST:
                raise _Beyond
            written.append(atom * repeats)
        return "".join(written)

    def _atom(self) -> str:
        sign = self._next()
        match sign:
            case "^" | "$":
                return ""
            case ".":
                return "a"
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()[0]
            case "*" | "+" | "?" | "{":
                raise _Beyond
        return sign

    def _group(self) -> str:
        if self._take("?"):
            if self._take("P<") or (self._pattern[self._at : self._at + 2] not in ("<=", "<!") and self._take("<")):
                self._at = self._pattern.index(">", self._at) + 1
            elif not self._take(":"):
                raise _Beyond
        text = self._alternatives()
        if not self._take(")"):
            raise _Beyond
        return text

    def _class(self) -> str:
        excluding = self._take("^")
        members: list[str] = []
        while not self._take("]"):
            sign = self._next()
            found = self._escape() if sign == "\\" else sign
            if len(found) == 1 and self._pattern[self._at : self._at + 1] == "-" and self._after_dash() != "]":
                self._at += 1
                last = self._next()
                last = self._escape() if last == "\\" else last
                members.extend(chr(code) for code in range(ord(found), min(ord(last), ord(found) + 200) + 1))
            else:
                members.extend(found)
        if not excluding:
            return members[0]
        return next((sign for sign in _ALL if sign not in members), "é")

    def _after_dash(self) -> str:
        return self._pattern[self._at + 1 : self._at + 2]

    def _escape(self) -> str:
        """The signs that the escape stands for."""
        sign = self._next()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign in _PLAIN:
            return _PLAIN[sign]
        if sign in "DW":
            return "-"
        if sign == "S":
            return "a"
        if sign.isalnum():
            raise _Beyond
        return sign

    def _repeats(self) -> int:
        low, high = 1, 1
        if self._take("*"):
            low, high = 0, _MOST
        elif self._take("+"):
            high = _MOST
        elif self._take("?"):
            low = 0
        elif found := re.compile(r"\{(\d+)(,(\d*))?\}").match(self._pattern, self._at):
            self._at = found.end()
            low = int(found[1])
            high = (int(found[3]) if found[3] else _MOST) if found[2] else low
        self._take("?")
        if low > _MOST:
            raise _Beyond
        return min(low + self._longer, max(high, low))

    def _take(self, text: str) -> bool:
        taken = self._pattern.startswith(text, self._at)
        self._at += len(text) if taken else 0
        return taken

    def _next(self) -> str:
        if self._at >= len(self._pattern):
            raise _Beyond
        self._at += 1
        return self._pattern[self._at - 1]
