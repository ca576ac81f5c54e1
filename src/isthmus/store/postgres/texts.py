"""Text as PostgreSQL can hold it. Ids come from outside: one that is none is simply unknown, not an error of the
database."""

from __future__ import annotations

import hashlib
from typing import Final

_LONGEST: Final = 1000
"""Bytes of a name: an index of PostgreSQL holds less than 2704 for all columns of a row together."""
_NUL: Final = "\0"


def text(words: str) -> str:
    """Without what is no text (half a surrogate), and without NUL, which PostgreSQL has no place for."""
    return words.encode("utf-8", "replace").decode().replace(_NUL, "\ufffd")


def name(words: str) -> str:
    """The same for what is found by an index: of one that is too long its beginning, and a digest of the whole."""
    found = text(words)
    if len(found) * 4 <= _LONGEST or len(raw := found.encode()) <= _LONGEST:
        return found
    digest = hashlib.blake2b(raw, digest_size=20).hexdigest()
    return f"{raw[: _LONGEST - 50].decode('utf-8', 'ignore')}…{digest}"
