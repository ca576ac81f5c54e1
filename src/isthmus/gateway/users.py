"""Who still needs what was made for one configuration: requests that are served, and runs until they let go of it.

A gateway whose place another one has taken (`SIGHUP`) serves nobody new. When its last user is gone, its ways to the
providers can be closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from contextlib import suppress
from typing import Final

from isthmus.gateway.bell import Bell
from isthmus.gateway.runs import Runs
from isthmus.log import tell

log = logging.getLogger("isthmus.gateway")

_LAST_WORDS: Final = 10.0
"""Seconds that whoever was ended has to let go."""


class Users:
    __slots__ = ("_changed", "_users")

    def __init__(self) -> None:
        self._users: dict[Hashable, None] = {}
        self._changed = Bell()

    def __len__(self) -> int:
        return len(self._users)

    def begin(self, user: Hashable) -> None:
        self._users[user] = None

    def end(self, user: Hashable) -> None:
        """As often as one likes."""
        self._users.pop(user, None)
        if not self._users:
            self._changed.ring()

    async def none(self) -> None:
        while self._users:
            await self._changed.wait()

    async def leave(self, runs: Runs, patience: float) -> None:
        """Wait for all of them. Runs that take longer than `patience` are ended, each with its terminal event; nobody
        is waited for much beyond that."""
        try:
            async with asyncio.timeout(patience):
                await self.none()
            return
        except TimeoutError:
            tell(log, "warning", "gateway.reload.grace_over", users=len(self), grace=patience)
        for user in list(self._users):
            run = runs.get(*user) if isinstance(user, tuple) else None
            if run is not None:
                runs.stop(run, "shutdown")
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self.none()
