"""All threads of the Codex backend: started, found again by the calls they hold, bounded and swept.

The number of threads has a limit. To make room, closed threads go first, then the one idle longest, then
the one whose tools have kept it waiting longest; running ones are never touched.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from types import TracebackType

from isthmus.bridge.dialects.codex.wire import ThreadSpec
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.methods import Methods, open_thread
from isthmus.upstream.codex.process import CodexProcess
from isthmus.upstream.codex.supervisor import Health, Supervisor
from isthmus.upstream.codex.thread import CodexThread


class CodexSessions:
    def __init__(
        self,
        supervisor: Supervisor[CodexProcess],
        *,
        max_threads: int = 64,
        idle_seconds: float = 300.0,
        held_seconds: float = 1800.0,
        sweep_seconds: float = 15.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._supervisor = supervisor
        self._max_threads = max_threads
        self._idle_seconds = idle_seconds
        self._held_seconds = held_seconds
        self._sweep_seconds = sweep_seconds
        self._clock = clock
        self._threads: dict[str, CodexThread] = {}
        self._starting = 0
        self._sweeper: asyncio.Task[None] | None = None
        self._reapers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> CodexSessions:
        self._sweeper = asyncio.create_task(self._sweep_forever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def count(self) -> int:
        return sum(thread.alive for thread in self._threads.values())

    def health(self) -> Health:
        return self._supervisor.health()

    async def start(self, spec: ThreadSpec, history: Sequence[JsonObject] = ()) -> CodexThread:
        """A new thread; with `history`, the model sees those Responses items as what went before."""
        await self._make_room()
        self._starting += 1
        try:
            process = await self._supervisor.process()
            methods, thread_id = await self._open(process, spec)
            thread = CodexThread(process, methods, thread_id, spec, clock=self._clock)
            self._threads[thread_id] = thread
        finally:
            self._starting -= 1
        if history:
            try:
                await thread.inject(history)
            except BaseException:
                await thread.close()
                raise
        return thread

    async def _open(self, process: CodexProcess, spec: ThreadSpec) -> tuple[Methods, str]:
        """Whoever leaves while Codex is making a thread leaves it behind: it is closed as soon as it has a name."""
        opening = asyncio.create_task(open_thread(process, spec))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            reaper = asyncio.create_task(_close_unwanted(opening, process))
            self._reapers.add(reaper)
            reaper.add_done_callback(self._reapers.discard)
            raise

    def get(self, thread_id: str) -> CodexThread | None:
        thread = self._threads.get(thread_id)
        return thread if thread is not None and thread.alive else None

    def holding(self, call_ids: Collection[str]) -> CodexThread | None:
        """The paused thread that waits for exactly these calls (more outputs than it needs do no harm)."""
        for thread in self._threads.values():
            if thread.alive and thread.pending and set(thread.pending) <= set(call_ids):
                return thread
        return None

    async def models(self) -> list[JsonObject]:
        """Every model that the binary lists, page by page."""
        process = await self._supervisor.process()
        models: list[JsonObject] = []
        cursor: str | None = None
        while True:
            page = await process.request("model/list", {"cursor": cursor} if cursor else {})
            models += page.get("data") or []
            cursor = page.get("nextCursor")
            if not cursor:
                return models

    async def sweep(self) -> int:
        """Close threads that nobody came back to; says how many."""
        now = self._clock()
        limits = {"idle": self._idle_seconds, "paused": self._held_seconds}
        stale = [
            thread
            for thread in self._threads.values()
            if not thread.alive or now - thread.last_used >= limits.get(thread.state, float("inf"))
        ]
        for thread in stale:
            await self._forget(thread)
        return len(stale)

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        await self._supervisor.close()
        await asyncio.gather(*self._reapers)
        self._threads = {}

    async def _make_room(self) -> None:
        while len(self._threads) + self._starting >= self._max_threads:
            candidates = [thread for thread in self._threads.values() if thread.state != "running"]
            if not candidates:
                raise UpstreamFailed(
                    f"all {self._max_threads} codex threads are busy; try again soon",
                    code="server_is_overloaded",
                    status=503,
                    retry_after=1.0,
                )
            order = {"closed": 0, "idle": 1, "paused": 2}
            await self._forget(min(candidates, key=lambda thread: (order[thread.state], thread.last_used)))

    async def _forget(self, thread: CodexThread) -> None:
        self._threads.pop(thread.id, None)
        await thread.close()

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(self._sweep_seconds)
            await self.sweep()


async def _close_unwanted(opening: asyncio.Task[tuple[Methods, str]], process: CodexProcess) -> None:
    with contextlib.suppress(UpstreamFailed):
        methods, thread_id = await opening
        await methods.close(process, thread_id)
