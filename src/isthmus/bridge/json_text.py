"""Texts that may be JSON, read without raising: arguments as they grow, and what vendors call arguments."""

from __future__ import annotations

from typing import Any, Final

import msgspec

NOT_JSON: Final = object()
_CLOSING: Final = {"{": "}", "[": "]", '"': '"'}


def read_json(text: str) -> Any:
    """The value of a text; `NOT_JSON` where it is not one complete JSON value."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return NOT_JSON


def is_json(text: str) -> bool:
    """Whether the text is one complete JSON value.

    Vendors make us ask at many fragments: a text that cannot be over, by its first and last characters, is not read.
    """
    bare = text.strip(" \t\r\n")
    closing = _CLOSING.get(bare[:1])
    return (closing is None or bare.endswith(closing)) and read_json(bare) is not NOT_JSON
