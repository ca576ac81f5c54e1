"""One Codex thread as a conversation in legs.

`run` starts a turn and yields its deltas; if the model calls tools, the leg ends with the turn still alive
and `answer` yields the next leg. Calls are answered in any order, also those that Codex has not asked for
yet. A leg that its reader leaves early is interrupted, so that nobody pays for words that nobody hears.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Literal

from isthmus.bridge.deltas import Delta, Failed
from isthmus.bridge.dialects.codex.decode import LegDecoder
from isthmus.bridge.dialects.codex.wire import ThreadSpec, TurnSpec
from isthmus.errors import RequestRefused, UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.failures import CodexGone
from isthmus.upstream.codex.methods import Methods, ToolOutput
from isthmus.upstream.codex.process import CodexProcess
from isthmus.upstream.codex.rpc import Request, RequestId
from isthmus.upstream.codex.turns import TurnMessage, TurnQueue

ThreadState = Literal["idle", "running", "paused", "closed"]


class CodexThread:
    def __init__(
        self,
        process: CodexProcess,
        methods: Methods,
        thread_id: str,
        spec: ThreadSpec,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.id = thread_id
        self.spec = spec
        self.state: ThreadState = "idle"
        self.last_used = clock()
        self._process = process
        self._methods = methods
        self._clock = clock
        self._lock = asyncio.Lock()
        self._queue: TurnQueue | None = None
        self._turn: asyncio.Task[str] | None = None
        self._held: dict[str, RequestId] = {}
        self._answers: dict[str, JsonObject] = {}
        self._pending: tuple[str, ...] = ()

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of the calls that the paused turn waits for, in call order."""
        return self._pending if self.state == "paused" else ()

    @property
    def alive(self) -> bool:
        return self.state != "closed" and not self._process.ended.is_set()

    async def inject(self, items: Sequence[JsonObject]) -> None:
        """Append Responses items to what the model sees, without sampling."""
        async with self._lock:
            self._check_alive()
            await self._methods.inject(self._process, self.id, items)

    def run(self, turn: TurnSpec) -> AsyncGenerator[Delta, None]:
        """A new turn's first leg. Turns of one thread come one after the other."""
        return self._leg(lambda: self._begin(turn))

    def answer(self, outputs: Mapping[str, ToolOutput]) -> AsyncGenerator[Delta, None]:
        """The paused turn's next leg; every pending call needs its output."""
        return self._leg(lambda: self._give(outputs))

    async def interrupt(self) -> None:
        """Stop the turn. A running leg ends with a failure; a paused one is given up and the thread closed."""
        if self.state == "running" and self._turn is not None:
            with contextlib.suppress(UpstreamFailed):
                await self._methods.interrupt(self._process, self.id, await asyncio.shield(self._turn))
        elif self.state == "paused":
            await self._stop()

    async def close(self) -> None:
        """Let go of the thread; a turn that is still alive is interrupted first."""
        if self.state in ("running", "paused"):
            await self._stop()
        elif self.state != "closed":
            await self._release()

    async def _leg(self, begin: Callable[[], Awaitable[TurnQueue]]) -> AsyncGenerator[Delta, None]:
        """Close this generator when leaving early (`contextlib.aclosing`): that is what interrupts the turn."""
        last: list[Delta] = []
        async with self._lock:
            self._check_alive()
            decoder = LegDecoder(self.spec.tool_names, marks_responses=self._process.marks_responses)
            try:
                queue = await begin()
                while True:
                    deltas = self._take(await queue.get(), decoder)
                    if decoder.state != "open":
                        last = deltas
                        break
                    for delta in deltas:
                        yield delta
            finally:
                await self._after_leg(decoder, failed=any(isinstance(delta, Failed) for delta in last))
        # Outside: whoever stops listening at the last delta leaves nothing locked behind.
        for delta in last:
            yield delta

    def _take(self, message: TurnMessage, decoder: LegDecoder) -> list[Delta]:
        params = message.params
        turn_id = params.get("turnId") or (params.get("turn") or {}).get("id")
        ours = self._methods.older or turn_id is None or turn_id == self._turn_id()
        if not isinstance(message, Request):
            return decoder.feed(message.method, params) if ours else []
        call_id = str(params.get("callId") or "")
        if not ours:
            self._process.reject(message.id, "this turn is over")
        elif call_id in self._answers:
            self._process.reply(message.id, self._answers.pop(call_id))
        else:
            self._held[call_id] = message.id
            return decoder.feed(self._methods.tool_call, params)
        return []

    async def _begin(self, turn: TurnSpec) -> TurnQueue:
        if self.state == "paused":
            raise RequestRefused(
                f"tool calls wait for their outputs ({', '.join(self._pending)}); send them before anything else",
                param="input",
            )
        self._queue = queue = self._process.open_turn(self.id)
        self._held, self._answers = {}, {}
        self.state = "running"
        self._turn = asyncio.create_task(self._methods.start_turn(self._process, self.id, self.spec, turn))
        # Shielded: a reader who leaves now still needs the turn's id to stop it.
        await asyncio.shield(self._turn)
        return queue

    async def _give(self, outputs: Mapping[str, ToolOutput]) -> TurnQueue:
        if self.state != "paused" or self._queue is None:
            raise RequestRefused("no tool call waits for an output in this conversation", param="input")
        missing = [call_id for call_id in self._pending if call_id not in outputs]
        if missing:
            raise RequestRefused(
                f"no output for tool calls {', '.join(f'`{call_id}`' for call_id in missing)}; answer all at once",
                param="input",
            )
        self.state = "running"
        for call_id in self._pending:
            reply = self._methods.tool_reply(outputs[call_id])
            if call_id in self._held:
                self._process.reply(self._held.pop(call_id), reply)
            else:
                self._answers[call_id] = reply
        self._pending = ()
        return self._queue

    async def _after_leg(self, decoder: LegDecoder, *, failed: bool) -> None:
        self.last_used = self._clock()
        if decoder.state == "paused":
            self._pending = tuple(decoder.calls)
            self.state = "paused"
        elif decoder.state == "ended" and not decoder.abandoned:
            self._end_turn()
            self.state = "idle"
            if failed:
                await self._release()
        elif self.state == "running":
            await self._stop()

    async def _stop(self) -> None:
        """Interrupt, then let go: an interrupted thread carries a note about it that no client wrote."""
        turn = self._turn
        try:
            if turn is not None and not self._process.ended.is_set():
                with contextlib.suppress(UpstreamFailed, TimeoutError):
                    async with asyncio.timeout(5):
                        turn_id = await asyncio.shield(turn)
                    await self._methods.interrupt(self._process, self.id, turn_id)
        finally:
            await self._release()

    async def _release(self) -> None:
        self._end_turn()
        self.state = "closed"
        if not self._process.ended.is_set():
            with contextlib.suppress(UpstreamFailed):
                await self._methods.close(self._process, self.id)

    def _end_turn(self) -> None:
        if self._queue is not None:
            self._process.close_turn(self.id, self._queue)
        self._queue, self._turn = None, None
        self._held, self._answers, self._pending = {}, {}, ()

    def _turn_id(self) -> str | None:
        turn = self._turn
        return turn.result() if turn is not None and turn.done() and not turn.cancelled() else None

    def _check_alive(self) -> None:
        if self._process.ended.is_set():
            self.state = "closed"
        if self.state == "closed":
            raise CodexGone("this codex thread is gone; its history can be given to a new one")
