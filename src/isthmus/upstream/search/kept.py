"""What was found a moment ago is not asked for again: answers and pages, for so long and in so many bytes.

It is the same for everybody who asks the same: nothing in it belongs to anybody. The longest unused go first.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_ENTRY: Final = 500
"""Bytes that an entry takes beside its words."""


class Kept(Generic[T]):
    def __init__(
        self, most: int, ttl: float, size: Callable[[T], int], now: Callable[[], float] = time.monotonic
    ) -> None:
        """`most`: bytes; `ttl`: seconds. With either of them 0, nothing is kept."""
        self._most = most
        self._ttl = ttl
        self._size = size
        self._now = now
        self._entries: OrderedDict[Hashable, tuple[float, int, T]] = OrderedDict()
        self._held = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> T | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if self._now() >= found[0]:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return found[2]

    def put(self, key: Hashable, value: T) -> None:
        self._drop(key)
        size = _ENTRY + self._size(value)
        if size > self._most or not self._ttl:
            return
        self._entries[key] = (self._now() + self._ttl, size, value)
        self._held += size
        while self._held > self._most:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._held -= entry[1]
