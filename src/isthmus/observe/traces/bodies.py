"""A body → its fields and messages in the order of the wire, each with its size and a keyed hash.

In: a body as it is handed to the wire, or what is said in one as JSON. Out: a `TracedBody`, or its JSON. Two bodies of
the same installation begin with the same bytes for as long as their pieces are the same: that is what a provider's
prompt cache goes by. Marks that only tell the cache where to look move with every turn; they are no part of the prompt,
and of no piece. The key keeps short contents from being guessed: without it, whoever reads a trace could try words
until their hash fits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, Final

import msgspec

from isthmus.observe.traces.seen import Key, Seen
from isthmus.ports.traced import Piece, TracedBody
from isthmus.protocol.large import LARGE, decode_large, encode_sized

MOST_PIECES: Final = 4_000
"""Fields and messages of a body that are hashed one by one; more are only counted."""
_BREATH: Final = 64
"""Pieces after which others have their turn: this thread shares the interpreter with every stream."""
MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Of declarations, blocks and parts: where a prompt cache is to begin."""
_SPELT: Final = tuple(f'"{mark}"'.encode() for mark in MARKS)
_MANY: Final = 8
"""Members from which on those of a list are remembered."""
_SHORT, _FIRST, _REMEMBERED = 64, 256, 16
"""Characters of a name, and the members of a list of that name whose paths are remembered; of so many names."""
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_members: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_TABLE: Final = ord("{")
_UNTOLD: Final[Iterable[Any]] = repeat(None)
"""Of pieces whose bytes tell what they are."""


class Rest(msgspec.Struct, frozen=True):
    """A body but for what is said."""

    before: tuple[Piece, ...]
    """Its pieces before what is said, …"""
    after: tuple[Piece, ...]
    """… and behind it."""
    size: int

    @property
    def count(self) -> int:
        return len(self.before) + len(self.after)


class _Head(msgspec.Struct):
    """Of a message, a tool or an item, what tells which one it is."""

    role: Any = None
    function: Any = None
    name: Any = None
    type: Any = None


_head: Final = msgspec.json.Decoder(_Head).decode


class Bodies:
    def __init__(self, secret: bytes) -> None:
        self._keyed = hashlib.blake2b(digest_size=8, key=secret[:64])
        self._seen: Seen[Piece] = Seen()

    @classmethod
    def of(cls, installation: bytes) -> Bodies:
        """Those of one installation, by its key (that of the envelopes): what is hashed means nothing elsewhere."""
        return cls(hashlib.blake2b(b"traces", key=installation[:64]).digest())

    def hash(self, data: bytes) -> str:
        keyed = self._keyed.copy()
        keyed.update(data)
        return keyed.hexdigest()

    def read(self, body: Mapping[str, Any], size: int = 0) -> TracedBody:
        """`size`: of what it was made of, where that is large."""
        pieces: list[Piece] = []
        count, total = 0, _around(tuple(body))
        encode: Callable[[Any], bytes] = _encode if size <= LARGE else partial(encode_sized, size=size)
        step = _BREATH if size <= LARGE else 1
        for name, value in body.items():
            if not (isinstance(value, list) and value and type(value[0]) is dict):
                data = encode(value)
                pieces.append(self._field((name, data)))
                count, total = count + 1, total + len(data)
                if count % step == 0:
                    time.sleep(0)
                continue
            paths, total = _paths(name, len(value)), total + len(value) + 1
            for start in range(0, len(value), step):
                some = value[start : start + step]
                written = list(map(encode, some))
                count, total = count + len(some), total + sum(map(len, written))
                if len(pieces) < MOST_PIECES:
                    pieces += self._listed(paths[start : start + step], written, some, many=len(value) >= _MANY)
                if count >= step:
                    time.sleep(0)
        return _body(total, tuple(pieces), count)

    def read_rest(self, body: Mapping[str, Any], name: str) -> Rest | None:
        """Of one with a 0 in the field of this name: all but what is said there. `None`: there is more than is told."""
        read = self.read(body)
        if read.more:
            return None
        at = [piece.path for piece in read.pieces].index(name)
        return Rest(read.pieces[:at], read.pieces[at + 1 :], read.bytes - 1)

    def read_said(self, name: str, count: int, said: bytes) -> tuple[Piece | msgspec.Raw, str]:
        """Of so many messages in a field of this name, as JSON: their pieces as they stand in the list of all, and the
        hash of the first that a person has said."""
        if count == 1:
            piece = self._make(f"{name}[0]", data := said[1:-1], _role_in(data))
            return piece, piece.hash if piece.role == _USER else ""
        members = list(map(bytes, _members(said)))
        pieces = list(self._listed(_paths(name, count), members, _UNTOLD, many=count >= _MANY))
        return msgspec.Raw(_encode(pieces)[1:-1]), next((piece.hash for piece in pieces if piece.role == _USER), "")

    def _field(self, key: Key) -> Piece:
        return self._seen.find(key) or self._look_closely(key, "")

    def _listed(
        self, paths: Sequence[str], written: list[bytes], values: Iterable[Any], *, many: bool
    ) -> Iterable[Piece]:
        """One message or two are made sooner than noted, and may never come again."""
        if many:
            return self._known(paths, written, values)
        roles = map(_role_in, written) if values is _UNTOLD else map(_role, values)
        return map(self._make, paths, written, roles)

    def _known(self, paths: Sequence[str], written: list[bytes], values: Iterable[Any]) -> list[Piece]:
        """A long history comes by here with every turn: nearly all of it was seen before."""
        keys = list(zip(paths, written, strict=True))
        found = list(map(self._seen.find, keys))
        if None in found:
            found = [
                piece or self._look_closely(key, _role_in(key[1]) if value is None else _role(value))
                for piece, key, value in zip(found, keys, values, strict=False)
            ]
        return found  # type: ignore[return-value]  # each was found, or is new

    def _look_closely(self, key: Key, role: str) -> Piece:
        piece = self._seen.recall(key, None) or self._make(*key, role)
        self._seen.note(key, piece)
        return piece

    def _make(self, path: str, data: bytes, role: str) -> Piece:
        # One look where there is no mark; `in` would make an error of the bytes first, since they are no number.
        if data.find(b"cache_") >= 0 and any(mark in data for mark in _SPELT):
            size = len(data)
            data = encode_sized(_unmarked(decode_large(data) if size > LARGE else _decode(data)), size)
        return Piece(path, len(data), self.hash(data), role)

    def text(self, text: str) -> TracedBody:
        """Of something that is no table of fields."""
        data = text.encode("utf-8", "surrogatepass")
        return TracedBody(len(data), (Piece("", len(data), self.hash(data)),))


def _body(total: int, pieces: tuple[Piece, ...], count: int = 0) -> TracedBody:
    """`count`: of all pieces, where there are more than these."""
    if len(pieces) < MOST_PIECES:
        return TracedBody(total, pieces)
    return TracedBody(total, pieces[:MOST_PIECES], max(count, len(pieces)) - MOST_PIECES)


def _around(names: tuple[str, ...]) -> int:
    """Bytes of the names of a body, its colons, commas and braces."""
    return len(_encode(names)) + len(names)


def _paths(name: str, count: int) -> Sequence[str]:
    """Of the members of a list."""
    if count == 1:
        return (f"{name}[0]",)
    first = _first_paths(name) if len(name) <= _SHORT else ()
    if count <= len(first):
        return first[:count]
    return [*first, *(f"{name}[{index}]" for index in range(len(first), count))]


@lru_cache(_REMEMBERED)
def _first_paths(name: str) -> tuple[str, ...]:
    return tuple(f"{name}[{index}]" for index in range(_FIRST))


def _role(value: Any) -> str:
    if type(value) is not dict:
        return ""
    return _role_of(_Head(value.get("role"), value.get("function"), value.get("name"), value.get("type")))


_USER: Final = "user"
_SPOKEN: Final = (b'{"role":"user",', b'{"type":"message","role":"user",')
"""How messages of people begin in most dialects: these need not be read to know whose they are."""


def _role_in(data: bytes) -> str:
    if data.startswith(_SPOKEN):
        return _USER
    if data[0] != _TABLE:
        return ""
    head = _head(data)
    role = head.role
    return role if type(role) is str and role else _role_of(head)


def _role_of(head: _Head) -> str:
    """Whose message it is; of a tool, what it is called; of an item, its type."""
    role = head.role
    if not role:
        function = head.function
        role = (function.get("name") if isinstance(function, dict) else head.name) or head.type
    return role if isinstance(role, str) else ""


def _unmarked(value: Any) -> Any:
    """Without marks, of a declaration or a message, and of its parts; what is deeper inside is what somebody said."""
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    if isinstance(content, list) and any(isinstance(part, dict) and not MARKS.isdisjoint(part) for part in content):
        value = {**value, "content": [_unmarked(part) for part in content]}
    if MARKS.isdisjoint(value):
        return value
    return {name: inner for name, inner in value.items() if name not in MARKS}
