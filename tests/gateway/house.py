"""A gateway without sockets: its upstream says what the test lets it say, its time is the test's own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from isthmus.bridge.deltas import Delta, Finished, Text
from isthmus.bridge.parse import parse_request
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.run import Run
from isthmus.gateway.caller import Caller
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.runs import RunLimits
from isthmus.gateway.settings import Settings
from isthmus.ports import OURS, Behalf, Fact, Store
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider
from isthmus.testing.checker import InlineChecker


class Asked:
    """One request that reached the upstream: the test answers it."""

    def __init__(self, provider: str, body: JsonObject) -> None:
        self.provider = provider
        self.body = body
        self.task = asyncio.current_task()
        """Who asks: whatever reads the run."""
        self.closed = False
        self._steps: asyncio.Queue[Sequence[Delta] | BaseException | None] = asyncio.Queue()
        self._accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        return f"{self.provider} for {self.task.get_name() if self.task is not None else None}"

    def accept(self) -> None:
        if not self._accepted.done():
            self._accepted.set_result(None)

    def fail(self, failure: BaseException) -> None:
        """Refuse the request, or break off the answer."""
        if self._accepted.done():
            self._steps.put_nowait(failure)
        else:
            self._accepted.set_exception(failure)

    def say(self, *deltas: Delta) -> None:
        self.accept()
        self._steps.put_nowait(deltas)

    def end(self, text: str = "") -> None:
        self.say(*([Text(text)] if text else []), Finished("stop"))
        self._steps.put_nowait(None)

    async def accepted(self) -> None:
        await self._accepted

    async def deltas(self) -> AsyncIterator[Sequence[Delta]]:
        while (step := await self._steps.get()) is not None:
            if isinstance(step, BaseException):
                raise step
            yield step


class Upstream:
    """A backend. `asked` are the requests that came, `open` those whose connection is not closed."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    @property
    def open(self) -> list[Asked]:
        return [asked for asked in self.asked if not asked.closed]

    @asynccontextmanager
    async def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        asked = Asked(plan.target.provider, body)
        self.asked.append(asked)
        try:
            await asked.accepted()
            yield asked.deltas()
        finally:
            asked.closed = True

    async def ready(self) -> str | None:
        return None

    async def aclose(self) -> None:
        pass


class Heard:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def tell(self, fact: Fact) -> None:
        self.facts.append(fact)


_ids = itertools.count(1)


def make_gateway(
    store: Store,
    upstream: Upstream,
    *,
    now: Any = None,
    limits: RunLimits | None = None,
    fallbacks: dict[str, list[str]] | None = None,
    observer: Heard | None = None,
    new_id: Callable[[str], str] | None = None,
    total_timeout: float | None = None,
) -> Gateway:
    provider = load_provider("openai-compatible")
    served = {name: Served(name, provider, upstream, total_timeout) for name in ("one", "two")}
    return Gateway(
        Directory(served=served, default="one/m", fallbacks=fallbacks or {}),
        store,
        checker=InlineChecker(),
        settings=Settings(runs=limits or RunLimits()),
        now=now or asyncio.get_running_loop().time,
        new_id=new_id or (lambda prefix: f"{prefix}_{next(_ids)}"),
        observer=observer,
    )


def asking(**fields: Any) -> Any:
    return parse_request({"model": "one/m", "input": "hi", **fields})


async def start(gateway: Gateway, caller: Caller, **fields: Any) -> Run:
    return await gateway.create(caller, asking(stream=True, **fields))


async def start_in_background(gateway: Gateway, caller: Caller, **fields: Any) -> str:
    request = asking(background=True, **fields)
    run = await gateway.create(caller, request)
    return (await gateway.create_in_background(caller, run, request))["id"]
