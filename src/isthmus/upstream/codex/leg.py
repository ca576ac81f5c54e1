"""One HTTP leg of a Codex turn: begun before the client is told anything, left early without a trace.

Worth knowing: Codex says "accepted" before its own upstream has seen the request. So a leg is held back until
its first delta is there, and an upstream's refusal still becomes an HTTP status; a stream whose model thinks in
silence is let through after a few seconds all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from isthmus.bridge.deltas import Delta, Failed, Text
from isthmus.bridge.dialects.codex.errors import failure_of
from isthmus.errors import UpstreamFailed, UpstreamTimedOut
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.naming import named, named_deltas


class Leg:
    def __init__(
        self, provider: str, thread: CodexThread, deltas: AsyncGenerator[Delta, None], *, silence: float
    ) -> None:
        self.thread = thread
        self.ended = False
        """Whether the leg was read to its end: the thread is paused or idle now, or closed."""
        self._provider = provider
        self._deltas = deltas
        self._silence = silence
        self._texts: list[str] = []
        self._first = asyncio.create_task(self._next())

    @property
    def text(self) -> str:
        return "".join(self._texts)

    async def accepted(self, patience: float | None) -> None:
        """Wait for the first delta, `None`: as long as it takes. Raises the failure if that is what it is."""
        done, _ = await asyncio.wait({self._first}, timeout=patience)
        if done and isinstance(failed := self._first.result(), Failed):
            raise failure_of(failed, self._provider)

    async def read(self) -> AsyncIterator[Sequence[Delta]]:
        delta = await self._first
        while delta is not None:
            if isinstance(delta, Text):
                self._texts.append(delta.text)
            yield named_deltas((delta,), self._provider)
            delta = await self._next()
        self.ended = True

    async def close(self) -> None:
        """Leave: a turn that is still running is interrupted, and its upstream connection closed."""
        self._first.cancel()
        await asyncio.wait({self._first})
        if not self._first.cancelled():
            self._first.exception()  # told already, or of no interest any more
        await self._deltas.aclose()

    async def _next(self) -> Delta | None:
        try:
            async with asyncio.timeout(self._silence):
                return await anext(self._deltas, None)
        except UpstreamFailed as failure:
            named(failure, self._provider)
            raise
        except TimeoutError as error:
            raise UpstreamTimedOut(
                f"provider `{self._provider}` was silent for {self._silence:g} s", metadata={"provider": self._provider}
            ) from error
