"""The end of all runs: patience, then their last words, then none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.gateway.draining import drain_runs
from own_time import run_in_own_time


class Running:
    """Runs that end after so long, or when they are told to, or only when they are cut off, or never."""

    def __init__(self, ends: str) -> None:
        self._over = asyncio.Event()
        self._ends = ends
        self.told: list[str] = []
        if ends == "soon":
            asyncio.get_running_loop().call_later(1, self._over.set)

    def __len__(self) -> int:
        return 1

    async def none(self) -> None:
        await self._over.wait()

    def stop_all(self, reason: str) -> None:
        self.told.append(reason)
        if self._ends == "stopped":
            self._over.set()

    def abandon(self) -> None:
        self.told.append("abandoned")
        if self._ends == "abandoned":
            self._over.set()


@pytest.mark.parametrize(
    ("ends", "told", "seconds", "logged"),
    [
        ("soon", [], 1, ""),
        ("stopped", ["shutdown"], 10, "gateway.drain.grace_over"),
        ("abandoned", ["shutdown", "abandoned"], 12, "gateway.drain.abandoned"),
        ("never", ["shutdown", "abandoned"], 17, "gateway.drain.stuck"),
    ],
)
def test_each_is_waited_for_as_long_as_it_is_worth(
    ends: str, told: list[str], seconds: float, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        runs: Any = Running(ends)
        began = asyncio.get_running_loop().time()
        await drain_runs(runs, 10, 2)
        assert asyncio.get_running_loop().time() - began >= seconds
        assert runs.told == told

    run_in_own_time(play())
    assert logged in caplog.text
    assert bool(caplog.text) is bool(logged)
