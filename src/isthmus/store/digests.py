"""Digests of what was hashed lately, by the content itself.

In: whose a piece is, what kind it is, and its bytes. Out: its digest. Clients send their instructions, their tools and
all that was said before with each turn, and each turn of a chain is read again with the next one: to find what is equal
costs a tenth of hashing it. Nothing is assumed of content that is not equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Content = tuple[str, bool, bytes]
"""Owner, whether it is a field, and the bytes."""

_MOST_BYTES: Final = 2_000_000
_MOST: Final = 3_000
_LARGEST: Final = 64_000
"""Bytes of one content that is worth its room."""


class Digests:
    """What was asked for since the last time that it was full, and what was there then: bounded, and what is asked for
    often stays. Any thread may ask: two that do at once make the same digest twice."""

    def __init__(
        self, make: Callable[[str, bool, bytes], bytes], most: int = _MOST, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._make = make
        self._most, self._most_bytes = most, most_bytes
        self._new: dict[Content, bytes] = {}
        self._old: dict[Content, bytes] = {}
        self._bytes = 0

    def of(self, owner: str, is_field: bool, data: bytes) -> bytes:
        content = (owner, is_field, data)
        if (known := self._new.get(content)) is not None:
            return known
        digest = self._old.get(content) or self._make(owner, is_field, data)
        if len(data) <= _LARGEST:
            self._remember(content, digest)
        return digest

    def _remember(self, content: Content, digest: bytes) -> None:
        self._bytes += len(content[2])
        if self._bytes > self._most_bytes or len(self._new) >= self._most:
            self._old, self._new, self._bytes = self._new, {}, len(content[2])
        self._new[content] = digest

    def __len__(self) -> int:
        return len(self._new) + len(self._old)
