"""A backend that fails as told, then answers: for the rules of retries and of places, without a wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from isthmus.bridge.deltas import Delta, Text
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.ports import OURS, Behalf
from isthmus.testing.fold import plan_for

PLAN = plan_for()


class Scripted:
    def __init__(self, *failures: UpstreamFailed | None, name: str = "", queue: int = 0) -> None:
        self.failures = list(failures)
        self.name = name
        self.queue = queue
        self.sent = 0
        self.closed = False

    @asynccontextmanager
    async def send(
        self, plan: Plan, body: dict[str, Any], behalf: Behalf = OURS
    ) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        self.sent += 1
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        yield self._answer()

    async def _answer(self) -> AsyncIterator[Sequence[Delta]]:
        yield [Text(self.name)]

    async def ready(self) -> str | None:
        return None

    async def aclose(self) -> None:
        self.closed = True


async def ask(backend: Any, plan: Plan = PLAN) -> str:
    async with backend.send(plan, {}) as answer:
        return "".join([delta.text async for deltas in answer for delta in deltas])
