"""JSON as it travels, read without raising and merged without sharing. `Any` stops here: inside, a value is read
through a TypedDict or a match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

JsonObject = dict[str, Any]
NOT_JSON: Final = object()
_CLOSING: Final = {"{": "}", "[": "]", '"': '"'}


def read_json(text: str) -> Any:
    """The value of a text; `NOT_JSON` where it is not one complete JSON value."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return NOT_JSON


def write_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def is_json(text: str) -> bool:
    """Whether the text is one complete JSON value. Vendors make us ask at many fragments: a text that cannot be over,
    by its first and last characters, is not read."""
    bare = text.strip(" \t\r\n")
    closing = _CLOSING.get(bare[:1])
    return (closing is None or bare.endswith(closing)) and read_json(bare) is not NOT_JSON


def count_values(raw: bytes | bytearray, most: int) -> int:
    """No fewer than the values that a JSON text holds, without building any; counting stops soon above `most`. Every
    value but the outermost stands behind a comma or an opening bracket; those inside strings are told apart only where
    it matters."""
    found = 1
    for start in range(0, len(raw), _WINDOW):
        found += count_marks(raw[start : start + _WINDOW])
        if found > most:
            return 1 + _count_outside(raw, most)
    return found


_WINDOW: Final = 262_144
"""Bytes that are counted at a time: less than a millisecond."""


def count_marks(text: bytes | bytearray) -> int:
    """One less than the values of a JSON text, or more than these: some may stand inside strings."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _count_outside(raw: bytes | bytearray, most: int) -> int:
    """Those that stand outside of strings."""
    found = start = inside = 0
    while start < len(raw) and found <= most:
        end = start + _WINDOW
        while raw[end - 1 : end] == b"\\":  # an escape is not cut
            end += 1
        bare = raw[start:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        pieces = bare.split(b'"')
        found += count_marks(b"".join(pieces[inside::2]))
        inside = (inside + len(pieces) - 1) % 2
        start = end
    return found


def without_nulls(given: JsonObject) -> JsonObject:
    """The fields that say something; an object without any `null` is given back as it is."""
    if None not in given.values():
        return given
    return {name: value for name, value in given.items() if value is not None}


def deep_merge(*fragments: Mapping[str, Any]) -> JsonObject:
    """All fragments as one new object: nested objects are merged, anything else is won by the later fragment."""
    merged: JsonObject = {}
    for fragment in fragments:
        for name, value in fragment.items():
            if isinstance(value, dict):
                known = merged.get(name)
                merged[name] = deep_merge(known, value) if isinstance(known, dict) else deep_merge(value)
            else:
                merged[name] = value
    return merged


def nest(path: str, value: Any) -> JsonObject:
    """`nest("reasoning.effort", "low")` → `{"reasoning": {"effort": "low"}}`."""
    for name in reversed(path.split(".")):
        value = {name: value}
    fragment: JsonObject = value
    return fragment


def contains(body: Mapping[str, Any], fragment: Mapping[str, Any]) -> bool:
    """Whether `body` says everything that `fragment` says."""
    return deep_merge(body, fragment) == body
