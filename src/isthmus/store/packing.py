"""JSON on disk: large pieces are compressed when that pays, small ones lie as they are.

No flag is needed to tell them apart: packed data starts with the letter `x`, and no JSON does.

What is read is compared with a digest of what was written: of each piece, of a turn (what a later one builds on), of a
whole row, of a batch of events. Pieces stand in the others by their digests, so that none can be missing or exchanged.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from isthmus.store.digests import Digests

_WORTH_PACKING: Final = 2048
"""Measured on tool lists and file contents: a third of the size for 7 ns a byte. Below 2 KB, little is won in space,
and unpacking hundreds of small items makes loading a long chain several times slower."""
_LEVEL: Final = 1
_list_of = msgspec.json.Decoder(list[msgspec.Raw])


def text(id: str) -> str:
    """Ids come from outside: one that is not valid text is simply unknown, not an error of the database."""
    return id.encode("utf-8", "replace").decode()


def pack(data: bytes) -> bytes:
    if len(data) < _WORTH_PACKING:
        return data
    packed = zlib.compress(data, _LEVEL)
    return packed if len(packed) < len(data) * 7 // 8 else data


def unpack(data: bytes) -> bytes:
    return zlib.decompress(data) if data[:1] == b"x" else data


def pack_list(values: Sequence[bytes]) -> bytes:
    return pack(b"[" + b",".join(values) + b"]")


def unpack_list(data: bytes) -> list[bytes]:
    return [bytes(value) for value in _list_of.decode(unpack(data))]


def _hash_piece(owner: str, is_field: bool, data: bytes) -> bytes:
    digest = hashlib.blake2b(data, digest_size=20, person=b"field" if is_field else b"item")
    digest.update(b"\0" + owner.encode())
    return digest.digest()


hash_piece: Final = Digests(_hash_piece).of
"""Equal for equal content of one owner; an item and a field never share."""


def read_piece(owner: str, is_field: bool, hash: bytes, data: bytes) -> bytes | None:
    """The content of a piece; `None` if it is not what was written."""
    try:
        content = unpack(data)
        return content if hash_piece(owner, is_field, content) == hash else None
    except (zlib.error, TypeError, AttributeError):  # SQLite stores any kind of value in any column
        return None


def digest_turn(columns: Sequence[str | int | None], pieces: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Of id, owner, previous id, status, model and provider (and the conversation, and where it stood, of a turn in
    one), and the items as (place, position, digest)."""
    return _digest(list(columns), sorted(pieces))


def digest_row(
    turn: bytes,
    created_at: float,
    conversation: str | None,
    content: tuple[bytes, bytes],
    fields: Iterable[tuple[int, bytes]],
) -> bytes:
    """Of the turn and everything else: `content` is skeleton and memo, `fields` are (position, digest)."""
    return _digest(turn, float(created_at), conversation, *content, sorted(fields))


def digest_events(first: int, last: int, data: bytes) -> bytes:
    return _digest(first, last, data)


def digest_conversation(*columns: object) -> bytes:
    return _digest(*columns)


def digest_place(conversation: str, position: int, item_id: str, ours: int, piece: bytes) -> bytes:
    """Of an item's place in a conversation: `piece` is the digest of what it says."""
    return _digest(conversation, position, item_id, ours, piece)


def seal_key(id: str, content: bytes) -> bytes:
    """Of a row of `keys`."""
    return _digest(id, content)


def _digest(*values: object) -> bytes:
    return hashlib.blake2b(msgspec.msgpack.encode(values), digest_size=12).digest()
