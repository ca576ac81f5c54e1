"""Waiting for what other processes do to the file.

SQLite tells nobody of a commit, but a connection can ask cheaply whether there was one (`PRAGMA data_version`). That
number belongs to its connection, so there is one for this alone; all who wait share its looks, and sleep in between.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Final

from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.readers import Readers

_PACE: Final = 0.05
"""Seconds between two looks."""


class Changes:
    def __init__(self, medium: Medium) -> None:
        # Its thread and its connection come with the first look.
        self._medium = medium
        self._reader = Readers(medium, threads=1)
        self._one = asyncio.Lock()
        self._version = 0
        self._fresh_until = 0.0

    async def watch(self, seconds: float, since: int | None) -> int:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        seen = await self._look() if since is None else since
        while (found := await self._look()) == seen and (left := until - loop.time()) > 0:  # noqa: ASYNC110  no event crosses processes
            await asyncio.sleep(min(left, _PACE))
        return found

    async def aclose(self) -> None:
        await self._reader.aclose()

    async def _look(self) -> int:
        """The version now, or a moment ago: older than the truth wakes somebody for nothing, and misses nothing."""
        async with self._one:
            if (at := asyncio.get_running_loop().time()) >= self._fresh_until:
                found = await self._reader.run(_data_version)
                # Another file counts from its own beginning: what was seen in the last one must not be met again.
                self._version = self._medium.opened << 48 | found
                self._fresh_until = at + _PACE / 2
            return self._version


def _data_version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version
