"""A short text that matches a regular expression of the kind JSON Schemas carry.

In: the pattern and a least length. Out: a text, or `None` for what it cannot do (look-around, back references, what
Python's own reader of patterns does not know). The first alternative and the fewest repeats win; to reach the length,
every repeat is made longer alike.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Callable, Iterable, Mapping
from re import _constants as sign
from re import _parser as reader
from typing import Any, Final

from isthmus.bridge.bounds import DEFAULT_BOUNDS
from isthmus.bridge.contract.validators import pattern_limits

# Python's own reader of patterns: private, and stable enough that Hypothesis builds on it as well.
_ALL: Final = string.ascii_lowercase + string.digits + string.ascii_uppercase + "-_ .:/#@" + string.punctuation + "é"
_CLASSES: Final[Mapping[Any, Callable[[str], bool]]] = {
    sign.CATEGORY_DIGIT: str.isdigit,
    sign.CATEGORY_SPACE: str.isspace,
    sign.CATEGORY_WORD: lambda one: one.isalnum() or one == "_",
}
_OPPOSITES: Final = {
    sign.CATEGORY_NOT_DIGIT: sign.CATEGORY_DIGIT,
    sign.CATEGORY_NOT_SPACE: sign.CATEGORY_SPACE,
    sign.CATEGORY_NOT_WORD: sign.CATEGORY_WORD,
}
LONGEST: Final = 10_000
"""Characters of the longest text that is made, whatever a schema asks for."""


class _Beyond(Exception):
    """A pattern that this sampler cannot follow."""


def sample_pattern(pattern: str, least: int = 0) -> str | None:
    """The shortest of its attempts that matches and is long enough."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what may mean something else in later Pythons is no concern of a schema's
            read = reader.parse(re.sub(r"\(\?<(?=[^=!])", "(?P<", pattern))
        for longer in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, least):
            text = _write(read, longer)
            if len(text) >= least and matches(pattern.replace("(?P<", "(?<"), text):
                return text
    except (_Beyond, re.error, RecursionError, OverflowError):
        pass
    return None


def matches(pattern: str, text: str) -> bool:
    """As JSON Schema means it. The validator gives up on a pattern that would take for ever; Python's `re` does not."""
    import jsonschema_rs

    try:
        limits = pattern_limits(DEFAULT_BOUNDS.max_regex)
        return bool(jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=limits).is_valid(text))
    except ValueError:
        return False


def _write(read: Iterable[tuple[Any, Any]], longer: int) -> str:
    written: list[str] = []
    size = 0
    for kind, told in read:
        written.append(_piece(kind, told, longer))
        size += len(written[-1])
        if size > LONGEST:
            raise _Beyond
    return "".join(written)


def _piece(kind: Any, told: Any, longer: int) -> str:
    if kind is sign.LITERAL:
        return chr(told)
    if kind is sign.ANY:
        return "a"
    if kind is sign.AT:
        return ""
    if kind is sign.IN or kind is sign.NOT_LITERAL:
        return _one_of(told if kind is sign.IN else [(sign.NEGATE, None), (sign.LITERAL, told)])
    if kind is sign.BRANCH:
        return _write(told[1][0], longer)
    if kind is sign.SUBPATTERN:
        return _write(told[-1], longer)
    if kind is sign.MAX_REPEAT or kind is sign.MIN_REPEAT:
        least, most, inner = told
        text, times = _write(inner, longer), min(least + longer, max(most, least))
        if len(text) * times > LONGEST:
            raise _Beyond
        return text * int(times)
    raise _Beyond


def _one_of(members: list[tuple[Any, Any]]) -> str:
    negated = members[0][0] is sign.NEGATE
    if not negated and members[0][0] is sign.LITERAL:
        return chr(members[0][1])
    if not negated and members[0][0] is sign.RANGE:
        return chr(members[0][1][0])
    fitting = (one for one in _ALL if any(_is(one, *member) for member in members) != negated)
    if (found := next(fitting, None)) is None:
        raise _Beyond
    return found


def _is(one: str, kind: Any, told: Any) -> bool:
    if kind is sign.LITERAL:
        return bool(ord(one) == told)
    if kind is sign.RANGE:
        return bool(told[0] <= ord(one) <= told[1])
    if kind is sign.CATEGORY:
        return _CLASSES[told](one) if told in _CLASSES else not _CLASSES[_OPPOSITES[told]](one)
    return False
