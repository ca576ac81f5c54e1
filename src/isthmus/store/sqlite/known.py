"""Which pieces the file has: those that its connection has written, or read whole and compared with their digests.

What a client repeats with each turn is neither looked for nor read again then. It holds as long as nobody else writes
to the file: the writer asks SQLite at the beginning of each transaction, and all is forgotten if somebody has. What
this connection itself removes or takes back is forgotten with that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final

_MOST: Final = 6_000
"""Pieces; a quarter of a kilobyte each."""


class Known:
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._version: int | None = None
        self._keys: dict[bytes, int] = {}
        self._digests: dict[int, bytes] = {}
        self.find: Callable[[bytes], int | None] = self._keys.get
        """The key of the piece with this digest."""

    def begin(self, connection: sqlite3.Connection) -> None:
        """In a transaction that writes: from now on to its end nobody else does."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self.clear()
            self._version = version

    def note(self, digest: bytes, key: int) -> None:
        if self._version is None:  # nobody asks who else writes
            return
        if len(self._keys) >= self._most:
            oldest = next(iter(self._keys))
            del self._digests[self._keys.pop(oldest)]
        self._keys[digest] = key
        self._digests[key] = digest

    def forget(self, keys: Iterable[int]) -> None:
        for key in keys:
            if (digest := self._digests.pop(key, None)) is not None:
                del self._keys[digest]

    def clear(self) -> None:
        self._keys.clear()
        self._digests.clear()


class Writing(sqlite3.Connection):
    """The connection that writes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.known = Known()


def known_to(connection: sqlite3.Connection) -> Known:
    return connection.known if isinstance(connection, Writing) else Known()
