"""A body → its fields and messages in the order of the wire, each with its size and a keyed hash.

In: a body as it is handed to the wire. Out: a `TracedBody`. Two bodies of the same installation begin with the same
bytes for as long as their pieces are the same: that is what a provider's prompt cache goes by. Marks that only tell the
cache where to look move with every turn; they are no part of the prompt, and of no piece. The key keeps short contents
from being guessed: without it, whoever reads a trace could try words until their hash fits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from isthmus.observe.traces.seen import Key, Seen
from isthmus.ports.traced import Piece, TracedBody
from isthmus.protocol.large import LARGE, encode_sized

MOST_PIECES: Final = 4_000
"""Fields and messages of a body that are hashed one by one; more are only counted."""
_BREATH: Final = 64
"""Pieces after which others have their turn: this thread shares the interpreter with every stream."""
MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Of declarations, blocks and parts: where a prompt cache is to begin."""
_SPELT: Final = tuple(f'"{mark}"'.encode() for mark in MARKS)
_FEW: Final = 8
"""Pieces of a body whose messages are not remembered."""
_SHORT, _FIRST, _REMEMBERED = 64, 256, 16
"""Characters of a name, and the members of a list of that name whose paths are remembered; of so many names."""
_encode: Final = msgspec.json.Encoder().encode


class Bodies:
    def __init__(self, secret: bytes) -> None:
        self._keyed = partial(hashlib.blake2b, digest_size=8, key=secret[:64])
        self._seen = Seen()

    @classmethod
    def of(cls, installation: bytes) -> Bodies:
        """Those of one installation, by its key (that of the envelopes): what is hashed means nothing elsewhere."""
        return cls(hashlib.blake2b(b"traces", key=installation[:64]).digest())

    def hash(self, data: bytes) -> str:
        return self._keyed(data).hexdigest()

    def read(self, body: Mapping[str, Any], size: int = 0) -> TracedBody:
        """`size`: of what it was made of, where that is large."""
        paths: list[str] = []
        values: list[Any] = []
        total = len(_encode(list(body))) + len(body)  # its names and colons, commas and braces
        for name, value in body.items():
            if type(value) is list and value and type(value[0]) is dict:
                paths += _paths(name, len(value))
                values += value
                total += len(value) + 1
            else:
                paths.append(name)
                values.append(value)
        if len(values) <= _BREATH and size <= LARGE:  # as nearly always
            pieces, taken = self._pieces(paths, values, _encode)
            return TracedBody(total + taken, tuple(pieces))
        pieces, taken = self._many_pieces(paths, values, size)
        return TracedBody(total + taken, tuple(pieces), len(values) - len(pieces))

    def _many_pieces(self, paths: list[str], values: list[Any], size: int) -> tuple[list[Piece], int]:
        """In steps, between which others have their turn."""
        pieces: list[Piece] = []
        total, step = 0, _BREATH if size <= LARGE else 1
        encode: Callable[[Any], bytes] = _encode if size <= LARGE else partial(encode_sized, size=size)
        for start in range(0, len(values), step):
            more, taken = self._pieces(paths[start : start + step], values[start : start + step], encode)
            pieces += more[: max(MOST_PIECES - len(pieces), 0)]
            total += taken
            time.sleep(0)
        return pieces, total

    def _pieces(self, paths: list[str], values: list[Any], encode: Callable[[Any], bytes]) -> tuple[list[Piece], int]:
        """With their bytes. A long history comes by here with every turn: nearly all of it was seen before."""
        written = list(map(encode, values))
        keys = list(zip(paths, written, strict=True))
        found = list(map(self._seen.find, keys))
        many = len(found) > _FEW
        while None in found:
            new = found.index(None)
            path, data = key = keys[new]
            if many or path[-1:] != "]":
                found[new] = self._look_closely(key, values[new], encode)
            else:  # one message or two are made sooner than noted, and may never come again; of many, most do
                found[new] = self._make(path, data, values[new], encode)
        return found, sum(map(len, written))  # type: ignore[return-value]  # each was found, or is new

    def _look_closely(self, key: Key, value: Any, encode: Callable[[Any], bytes]) -> Piece:
        piece = self._seen.recall(key, None) or self._make(*key, value, encode)
        self._seen.note(key, piece)
        return piece

    def _make(self, path: str, data: bytes, value: Any, encode: Callable[[Any], bytes]) -> Piece:
        if b"cache_" in data and any(mark in data for mark in _SPELT):  # one look where there is no mark
            data = encode(_unmarked(value))
        role = _role(value) if path[-1:] == "]" else ""
        return Piece(path, len(data), self._keyed(data).hexdigest(), role)

    def text(self, text: str) -> TracedBody:
        """Of something that is no table of fields."""
        data = text.encode("utf-8", "surrogatepass")
        return TracedBody(len(data), (Piece("", len(data), self.hash(data)),))


def _paths(name: str, count: int) -> Sequence[str]:
    """Of the members of a list."""
    first = _first_paths(name) if len(name) <= _SHORT else ()
    if count <= len(first):
        return first[:count]
    return [*first, *(f"{name}[{index}]" for index in range(len(first), count))]


@lru_cache(_REMEMBERED)
def _first_paths(name: str) -> tuple[str, ...]:
    return tuple(f"{name}[{index}]" for index in range(_FIRST))


def _role(value: Any) -> str:
    """Whose message it is; of a tool, what it is called; of an item, its type."""
    if type(value) is not dict:
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
