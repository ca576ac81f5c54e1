"""Hands out values from a text to the fields of a form, each to the field whose name asks for it.

In: `Words`, what the model itself has to say, and a field's name. Out: a value, or the next best one.
Things are handed out in turn, so that `from` and `to` get two cities and not twice the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from isthmus.demo.arithmetic import find_expression
from isthmus.demo.words import Words, word_set

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
_SEARCH: Final = re.compile(
    r"^(?:please\s+)?(?:search|google|browse|look up|look for|find)\b\s*"
    r"(?:(?:on |in )?the (?:web|internet)\s*)?(?:for\s+)?",
    re.IGNORECASE,
)

Sort = Literal["link", "email", "date", "file", "sum", "ask", "speech", "thing"]

_SORTS: Final[tuple[tuple[Sort, frozenset[str]], ...]] = (
    ("link", word_set("url uri link website href")),
    ("email", word_set("email")),
    ("date", word_set("date day when deadline due start end datetime")),
    ("file", word_set("path file filename filepath files")),
    ("sum", word_set("expression formula equation calculation math")),
    ("ask", word_set("query queries q search question prompt input topic task objective goal request keywords")),
    (
        "speech",
        word_set("""
            answer response reply text message content summary explanation description reason reasoning body comment
            thought output result note notes details final step analysis caption
        """),
    ),
)
_TO: Final = word_set("to recipient recipients cc bcc address")
_USUAL: Final = (
    (word_set("city location place town destination"), "Paris"),
    (word_set("name person user author customer"), "Ada"),
    (word_set("country"), "France"),
    (word_set("language"), "English"),
    (word_set("currency"), "EUR"),
)
"""For a text that has nothing to give."""


def words_of(name: str) -> list[str]:
    """`getUserName`, `get_user-name` → get, user, name."""
    return [word.lower() for word in _CAMEL.split(name) if word]


def sort_of(name: str) -> Sort:
    """What a field of this name holds; a `thing` is a name, a place, or whatever else the text is about."""
    words = set(words_of(name))
    return next((sort for sort, names in _SORTS if words & names), "thing")


class Supply:
    """What one text has to give, to one form."""

    def __init__(self, words: Words, said: str = "") -> None:
        self.words = words
        self._said = said
        self._things = list(words.things)
        self._numbers = list(words.numbers)

    def string(self, name: str) -> str:
        """Something for a field of this name."""
        words = self.words
        match sort_of(name):
            case "link" if words.urls:
                return words.urls[0]
            case "email" if words.emails:
                return words.emails[0]
            case "date" if words.dates:
                return words.dates[0]
            case "file" if words.files:
                return words.files[0]
            case "sum":
                return find_expression(words.text) or words.text
            case "ask":
                return _SEARCH.sub("", words.text).rstrip("?.! ") or words.text
            case "speech":
                return self._said or (words.quoted[0] if words.quoted else words.text)
            case "thing" if words.emails and _TO & set(words_of(name)):
                return words.emails[0]
        return self._thing() or next((usual for names, usual in _USUAL if names & set(words_of(name))), "")

    def _thing(self) -> str:
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
