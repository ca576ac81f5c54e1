"""Who waits for an answer may leave: then nobody draws, or embeds, for nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.server.http import ClientLeft
from isthmus.server.leaving import LEAVING, Leaving, leaving_of
from isthmus.server.once import answer_of
from own_time import turns


class Waiting:
    """An answer that never comes."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self._task: asyncio.Task[Any] | None = None

    async def answer(self) -> None:
        self._task = asyncio.current_task()
        await asyncio.Event().wait()

    def stop(self, reason: str) -> None:
        self.reasons.append(reason)
        if self._task is not None:
            self._task.cancel()

    def ended(self) -> Any:
        return type("Ended", (), {"outcome": "cancelled" if self.reasons else "refused"})()


@pytest.mark.parametrize("tells", [True, False], ids=["its connection tells", "its messages tell"])
async def test_a_client_that_goes_stops_it(tells: bool) -> None:
    scope: dict[str, Any] = {}
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    if tells:
        scope[LEAVING] = Leaving()
    once: Any = Waiting()
    waiting = asyncio.create_task(answer_of(once, scope, receive))
    await turns()
    leaving = leaving_of(scope)
    if leaving is not None:
        leaving.tell()
    gone.set()
    with pytest.raises(ClientLeft):
        await waiting
    assert once.reasons == ["left"]


async def test_a_server_that_is_stopped_is_no_client_that_left() -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    once: Any = Waiting()
    waiting = asyncio.create_task(answer_of(once, {}, receive))
    await turns()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert once.reasons == []
