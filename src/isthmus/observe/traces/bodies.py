"""A body → its fields and messages in the order of the wire, each with its size and a keyed hash.

In: a body as it is handed to the wire. Out: a `TracedBody`. Two bodies of the same installation begin with the same
bytes for as long as their pieces are the same: that is what a provider's prompt cache goes by. The key keeps short
contents from being guessed: without it, whoever reads a trace could try words until their hash fits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.ports.traces import Piece, TracedBody
from isthmus.protocol.large import LARGE, encode_sized

MOST_PIECES: Final = 4_000
"""Fields and messages of a body that are hashed one by one; more are only counted."""
_BREATH: Final = 64
"""Pieces after which others have their turn: this thread shares the interpreter with every stream."""
_encode: Final = msgspec.json.Encoder().encode


class Bodies:
    def __init__(self, secret: bytes) -> None:
        self._keyed = hashlib.blake2b(digest_size=8, key=secret[:64])

    def hash(self, data: bytes) -> str:
        keyed = self._keyed.copy()
        keyed.update(data)
        return keyed.hexdigest()

    def read(self, body: Mapping[str, Any], size: int = 0) -> TracedBody:
        """`size`: of what it was made of, where that is large."""
        pieces: list[Piece] = []
        more, total, keyed = 0, 1 + max(len(body), 1), self._keyed.copy
        for name, value in body.items():
            total += len(_encode(name)) + 1
            if not (isinstance(value, list) and value and isinstance(value[0], dict)):
                data = _encode(value) if size <= LARGE else encode_sized(value, size)
                hashed = keyed()
                hashed.update(data)
                pieces.append(Piece(name, len(data), hashed.hexdigest()))
                total += len(data)
                continue
            total += 1 + len(value)
            for index, each in enumerate(value):
                data = _encode(each) if size <= LARGE else encode_sized(each, size)
                total += len(data)
                if len(pieces) >= MOST_PIECES:
                    more += 1
                    continue
                hashed = keyed()
                hashed.update(data)
                pieces.append(Piece(f"{name}[{index}]", len(data), hashed.hexdigest(), _role(each)))
                if index % _BREATH == _BREATH - 1:
                    time.sleep(0)
        return TracedBody(total, tuple(pieces), more)

    def text(self, text: str) -> TracedBody:
        """Of something that is no table of fields."""
        data = text.encode("utf-8", "surrogatepass")
        return TracedBody(len(data), (Piece("", len(data), self.hash(data)),))


def _role(message: Any) -> str:
    """Of a message or an item; of a tool, its type."""
    role = (message.get("role") or message.get("type")) if isinstance(message, dict) else ""
    return role if isinstance(role, str) else ""
