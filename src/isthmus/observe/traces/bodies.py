"""A body → its fields and messages in the order of the wire, each with its size and a keyed hash.

In: a body as it is handed to the wire. Out: a `TracedBody`. Two bodies of the same installation begin with the same
bytes for as long as their pieces are the same: that is what a provider's prompt cache goes by. Marks that only tell the
cache where to look move with every turn; they are no part of the prompt, and of no piece. The key keeps short contents
from being guessed: without it, whoever reads a trace could try words until their hash fits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from isthmus.ports.traces import Piece, TracedBody
from isthmus.protocol.large import LARGE, encode_sized

MOST_PIECES: Final = 4_000
"""Fields and messages of a body that are hashed one by one; more are only counted."""
_BREATH: Final = 64
"""Pieces after which others have their turn: this thread shares the interpreter with every stream."""
MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Of declarations, blocks and parts: where a prompt cache is to begin."""
_SPELT: Final = tuple(f'"{mark}"'.encode() for mark in MARKS)
_encode: Final = msgspec.json.Encoder().encode


_SHORT: Final = 64
"""Of a name, and of a field, whose hash is remembered: models, switches and such, the same ones in
nearly every request."""
_REMEMBERED: Final = 2_048


class Bodies:
    def __init__(self, secret: bytes) -> None:
        self._keyed = hashlib.blake2b(digest_size=8, key=secret[:64])
        self._known = lru_cache(_REMEMBERED)(self._field)

    @classmethod
    def of(cls, installation: bytes) -> Bodies:
        """Those of one installation, by its key (that of the envelopes): what is hashed means nothing elsewhere."""
        return cls(hashlib.blake2b(b"traces", key=installation[:64]).digest())

    def hash(self, data: bytes) -> str:
        keyed = self._keyed.copy()
        keyed.update(data)
        return keyed.hexdigest()

    def _field(self, name: str, data: bytes) -> tuple[Piece, int]:
        """With the bytes that it takes, its name included."""
        return Piece(name, len(data), self.hash(data)), len(_encode(name)) + 1 + len(data)

    def read(self, body: Mapping[str, Any], size: int = 0) -> TracedBody:
        """`size`: of what it was made of, where that is large."""
        pieces: list[Piece] = []
        more, total, step = 0, 1 + max(len(body), 1), _BREATH if size <= LARGE else 1
        for name, value in body.items():
            if not (isinstance(value, list) and value and isinstance(value[0], dict)):
                data = _encode(value) if size <= LARGE else encode_sized(value, size)
                short = len(data) <= _SHORT and len(name) <= _SHORT
                piece, taken = self._known(name, data) if short else self._field(name, data)
                pieces.append(piece)
                total += taken
                continue
            total += len(_encode(name)) + 2 + len(value)
            for start in range(0, len(value), step):
                group = value[start : start + step]
                written = list(map(_encode, group)) if size <= LARGE else [encode_sized(each, size) for each in group]
                total += sum(map(len, written))
                if len(group) == step:
                    time.sleep(0)
                room = MOST_PIECES - len(pieces)
                if room < len(group):
                    more += len(group) - room
                    group, written = group[:room], written[:room]
                pieces += self._members(name, start, group, written, size)
        return TracedBody(total, tuple(pieces), more)

    def _members(self, name: str, start: int, group: list[Any], written: list[bytes], size: int) -> Iterator[Piece]:
        """Each of a list, from one place on: a long history comes by here with every turn."""
        keyed = self._keyed.copy
        for index, each in enumerate(group):
            data = written[index]
            if b"cache_" in data and any(mark in data for mark in _SPELT):  # one look where there is no mark
                data = encode_sized(_unmarked(each), size)
            hashed = keyed()
            hashed.update(data)
            yield Piece(f"{name}[{start + index}]", len(data), hashed.hexdigest(), _role(each))

    def text(self, text: str) -> TracedBody:
        """Of something that is no table of fields."""
        data = text.encode("utf-8", "surrogatepass")
        return TracedBody(len(data), (Piece("", len(data), self.hash(data)),))


def _role(value: Any) -> str:
    """Whose message it is; of a tool, what it is called; of an item, its type."""
    if not isinstance(value, dict):
        return ""
    role = value.get("role")
    if not role:
        function = value.get("function")
        role = (function if isinstance(function, dict) else value).get("name") or value.get("type")
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
