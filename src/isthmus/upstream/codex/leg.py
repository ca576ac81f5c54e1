"""One HTTP leg of a Codex turn: begun before the client is told anything, left early without a trace.

Worth knowing: Codex says "accepted" before its own upstream has seen the request. So a leg is held back until
its first words are there, and an upstream's refusal still becomes an HTTP status; a stream whose model thinks in
silence is let through after a few seconds all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from isthmus.bridge.deltas import CallArguments, Delta, Failed, Finished, Reasoning, Text
from isthmus.bridge.dialects.codex.errors import failure_of
from isthmus.bridge.limits import DEFAULT_ANSWER, AnswerLimits
from isthmus.errors import UpstreamFailed, UpstreamTimedOut
from isthmus.upstream.codex.thread import CodexThread
from isthmus.upstream.cut import cut_answer
from isthmus.upstream.naming import named, named_deltas

Begin = Callable[[], Awaitable[None]]


class Leg:
    def __init__(
        self,
        provider: str,
        thread: CodexThread,
        begin: Begin,
        *,
        silence: float,
        limits: AnswerLimits = DEFAULT_ANSWER,
    ) -> None:
        self.thread = thread
        self.cut = False
        """Whether it was ended here, while Codex goes on."""
        self._limits = limits
        self._provider = provider
        self._silence = silence
        self._texts: list[str] = []
        self._first = asyncio.create_task(self._begin(begin))

    @property
    def text(self) -> str:
        return "".join(self._texts)

    async def accepted(self, patience: float | None) -> None:
        """Wait for the first words, `None`: as long as it takes. Raises the failure if that is what they are."""
        done, _ = await asyncio.wait({self._first}, timeout=patience)
        if done:
            for delta in self._first.result():
                if isinstance(delta, Failed):
                    raise failure_of(delta, self._provider)

    async def read(self) -> AsyncIterator[Sequence[Delta]]:
        deltas, size, count = await self._first, 0, 0
        while deltas:
            self._texts += [delta.text for delta in deltas if isinstance(delta, Text)]
            yield named_deltas(deltas, self._provider)
            # In characters, which is no more than its bytes: Codex has unpacked them already.
            size += sum([len(delta.text) for delta in deltas if isinstance(delta, Text | Reasoning | CallArguments)])
            count += 1
            if isinstance(deltas[-1], Finished):
                size = count = 0  # it has ended by itself
            if size > self._limits.max_answer or count > self._limits.max_chunks:
                self.cut = True
                yield cut_answer(self._limits, "max_answer" if size > self._limits.max_answer else "max_chunks")
                return
            deltas = await self._next()

    async def leave(self) -> None:
        """Nobody waits for its first words any more."""
        self._first.cancel()
        await asyncio.wait({self._first})
        if not self._first.cancelled():
            self._first.exception()  # told already, or of no interest any more

    async def _begin(self, begin: Begin) -> Sequence[Delta]:
        await begin()
        return await self._next()

    async def _next(self) -> Sequence[Delta]:
        try:
            async with asyncio.timeout(self._silence):
                return await self.thread.read()
        except UpstreamFailed as failure:
            named(failure, self._provider)
            raise
        except TimeoutError as error:
            raise UpstreamTimedOut(
                f"provider `{self._provider}` was silent for {self._silence:g} s", metadata={"provider": self._provider}
            ) from error
