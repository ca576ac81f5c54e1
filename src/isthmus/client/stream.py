"""`async with bridge.run_stream(…) as events`: a run that is watched. `run` is this, drained."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Generic, Self, TypeVar, cast

from isthmus.client.events import RunEvent
from isthmus.client.loop import ToolLoop
from isthmus.client.result import RunResult

T = TypeVar("T")


class RunStream(Generic[T]):
    """Events of one run. Leaving the block early stops the run: connection closed, tools cancelled, books closed."""

    def __init__(self, start: Callable[[], Awaitable[ToolLoop]]) -> None:
        self._start = start
        self._run: ToolLoop | None = None
        self._events: AsyncGenerator[RunEvent, None] | None = None

    @property
    def result(self) -> RunResult[T]:
        """The result, once the run has ended in whatever way."""
        if self._run is None or self._run.result is None:
            raise RuntimeError("the run has not ended yet; read its events to the end, or leave the `async with` block")
        return cast(RunResult[T], self._run.result)

    async def __aenter__(self) -> Self:
        self._run = await self._start()
        self._events = self._run.events()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._events is not None:
            await self._events.aclose()

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        if self._events is None:
            raise RuntimeError("enter the stream first: `async with bridge.run_stream(…) as events`")
        return self._events

    async def drain(self) -> RunResult[T]:
        """Read it to its end."""
        async for _ in self:
            pass
        return self.result
