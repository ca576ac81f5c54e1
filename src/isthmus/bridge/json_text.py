"""Whether a text is JSON, asked without raising: of arguments as they grow, and of what vendors call arguments."""

from __future__ import annotations

from typing import Final

import msgspec

_CLOSING: Final = {"{": "}", "[": "]", '"': '"'}


def is_json(text: str) -> bool:
    """Whether the text is one complete JSON value.

    Vendors make us ask at many fragments: a text that cannot be over, by its first and last characters, is not read.
    """
    bare = text.strip(" \t\r\n")
    closing = _CLOSING.get(bare[:1])
    if closing is not None and not bare.endswith(closing):
        return False
    try:
        msgspec.json.decode(bare)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
