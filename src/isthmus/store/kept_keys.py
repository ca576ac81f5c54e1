"""Keys as they are written, in whichever store has to write them."""

from __future__ import annotations

from typing import Final

import msgspec

from isthmus.ports.keys import StoredKey
from isthmus.store.packing import seal_key
from isthmus.store.refusals import damaged_key

_reader: Final = msgspec.json.Decoder(StoredKey)


def write_key(key: StoredKey) -> bytes:
    """The same bytes for the same key, always."""
    return msgspec.json.encode(key, order="deterministic")


def read_row(id: str, content: bytes, seal: bytes) -> StoredKey:
    """A key from where it is sealed. Raises `StoreDamaged`."""
    try:
        key = read_key(content) if seal_key(id, content) == seal else None
    except TypeError:  # SQLite stores any kind of value in any column
        key = None
    if key is None:
        raise damaged_key(id)
    return key


def read_key(content: bytes) -> StoredKey | None:
    """`None`: this is no key. Fields that a later version has written are left out."""
    try:
        return _reader.decode(content)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError):
        return None
