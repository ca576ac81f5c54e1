"""Rings for everybody who waits now; whoever comes later waits for the next time. Costs nothing while nobody waits."""

from __future__ import annotations

import asyncio


class Bell:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                if not each.done():
                    each.set_result(None)

    async def wait(self) -> None:
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        finally:
            if mine in self._waiting:  # cut off before it rang
                self._waiting.remove(mine)
