"""A tool that runs here, scripted: it offers what it is told to, notes every call, and answers as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from isthmus.bridge.types.managed import Managed, ManagedCall, ManagedKind, Ran
from isthmus.ports import Behalf
from isthmus.ports.tools import Tell
from isthmus.protocol.json import JsonObject

Answering = Callable[[ManagedCall, Tell], "Ran | Awaitable[Ran]"]


class ScriptedTool:
    """`offer` are fields of `Managed`; `answer` says, or finds out, what comes of a call."""

    def __init__(self, kind: ManagedKind, answer: Answering | Ran, **offer: Any) -> None:
        self._kind, self._answer, self._offer = kind, answer, offer
        self.calls: list[ManagedCall] = []
        self.owners: list[str] = []
        """Who asked, call by call."""
        self.running = 0
        self.most = 0
        """How many calls ran at the same time, at most."""
        self.stopped = 0
        """Calls that were stopped before they were over."""
        self.closed = False

    @property
    def kind(self) -> ManagedKind:
        return self._kind

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        return replace(managed, **self._offer)

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        return replace(managed, **self._offer)

    def runner(self, behalf: Behalf) -> _Runner:
        return _Runner(self, behalf.owner)

    async def aclose(self) -> None:
        self.closed = True

    async def carry_out(self, call: ManagedCall, tell: Tell, owner: str) -> Ran:
        self.calls.append(call)
        self.owners.append(owner)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            made = self._answer if isinstance(self._answer, Ran) else self._answer(call, tell)
            return made if isinstance(made, Ran) else await made
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self.running -= 1


class _Runner:
    def __init__(self, tool: ScriptedTool, owner: str) -> None:
        self._tool, self._owner = tool, owner

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        return await self._tool.carry_out(call, tell, self._owner)
