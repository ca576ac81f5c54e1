"""What exactly changed inside a part of a prompt, where the bodies of both turns were kept.

In: a `Break` and both bodies. Out: the field inside the part and a few words of each side; the doctor's hashes say only
that something changed.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from isthmus.observe.diagnosis import Break
from isthmus.observe.differences import compare_json, first_words

_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_NOTHING: Final = object()


class Inside(msgspec.Struct, frozen=True):
    path: str
    """`messages[0].content`"""
    before: str
    after: str


def look_inside(broken: Break, before: Any, after: Any) -> Inside | None:
    """`None`: it was not there before, it is gone, or it cannot be found any more."""
    if broken.change != "changed":
        return None
    old, new = read_path(before, broken.path), read_path(after, broken.path)
    if old is _NOTHING or new is _NOTHING:
        return None
    first = next(compare_json(old, new, broken.path), None)
    return None if first is None else Inside(first.path, *first_words(_words(first.before), _words(first.after)))


def read_path(body: Any, path: str) -> Any:
    """What stands at `messages[0].content`; a sign of its own where there is nothing."""
    for index, name in _STEP.findall(path):
        try:
            body = body[int(index)] if index else body[name]
        except (LookupError, TypeError):
            return _NOTHING
    return body


def _words(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
