"""Keys as they are written, in whichever store has to write them."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.ports.keys import StoredKey

_reader: Final = msgspec.json.Decoder(StoredKey)


def write_key(key: StoredKey) -> bytes:
    """The same bytes for the same key, always."""
    return msgspec.json.encode(key, order="deterministic")


def read_key(content: bytes) -> StoredKey | None:
    """`None`: this is no key. Fields that a later version has written are left out."""
    try:
        return _reader.decode(content)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError):
        return None
