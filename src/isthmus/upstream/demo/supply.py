"""Hands out values from a text to the fields of a form, each to the field whose name asks for it.

In: `Words`, what the model itself has to say, and a field's name. Out: a value, or the next best one.
Things are handed out in turn, so that `from` and `to` get two cities and not twice the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from isthmus.upstream.demo.arithmetic import find_expression
from isthmus.upstream.demo.words import Words

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
_SEARCH: Final = re.compile(
    r"^(?:please\s+)?(?:(?:search|google|browse|look up|look for|find)\b)\s*(?:(?:on |in )?the (?:web|internet)\s*)?(?:for\s+)?",
    re.IGNORECASE,
)

_SPEAKS: Final = frozenset(
    "answer response reply text message content summary explanation description reason reasoning body comment thought "
    "output result note details final notes steps step analysis caption".split()
)
_ASKS: Final = frozenset(
    "query queries q search question prompt input topic task objective goal request keywords instructions".split()
)
_SUMS: Final = frozenset("expression formula equation calculation math".split())
_FILES: Final = frozenset("path file filename filepath files".split())
_DATES: Final = frozenset("date day when deadline due start end datetime".split())
_LINKS: Final = frozenset("url uri link website href".split())


def words_of(name: str) -> list[str]:
    """`getUserName`, `get_user-name` → get, user, name."""
    return [word.lower() for word in _CAMEL.split(name) if word]


class Supply:
    """What one text has to give, to one form."""

    def __init__(self, words: Words, said: str = "") -> None:
        self.words = words
        self._said = said
        self._things = list(words.things)
        self._numbers = list(words.numbers)

    def string(self, name: str) -> str:
        """Something for a field of this name."""
        kinds, words = set(words_of(name)), self.words
        for names, found in ((_LINKS, words.urls), ({"email"}, words.emails), (_DATES, words.dates)):
            if kinds & names and found:
                return found[0]
        if kinds & _FILES and words.files:
            return words.files[0]
        if kinds & _SUMS:
            return find_expression(words.text) or words.text
        if kinds & _ASKS:
            return _SEARCH.sub("", words.text).rstrip("?.! ") or words.text
        if kinds & _SPEAKS:
            return self._said or (words.quoted[0] if words.quoted else words.text)
        return self.thing()

    def thing(self) -> str:
        """The next name or quote; the last one stays."""
        if len(self._things) > 1:
            return self._things.pop(0)
        return self._things[0] if self._things else ""

    def number(self, fits: Callable[[int | float], bool]) -> int | float | None:
        """The next number that fits."""
        for at, number in enumerate(self._numbers):
            if fits(number):
                return self._numbers.pop(at)
        return None

    def mentioned(self, options: list[object]) -> object | None:
        """The first of the options that the text contains."""
        text = self.words.text.lower()
        for option in options:
            if isinstance(option, str) and option and re.search(rf"\b{re.escape(option.lower())}\b", text):
                return option
        return None
