"""The one registry of Codex threads: bounded, told by the process what concerns them, found again by where they stand.

A thread that rests is kept under the place of its conversation (a fingerprint, see `resume`). A request takes it from
there, so that no other can have it too, and brings it back, or closes it. Whoever is not taken in time is closed. To
make room for a new one the thread idle longest goes first, then the one whose tools have kept it waiting longest; busy
ones are never touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from isthmus.bridge.dialects.codex.wire import ThreadSpec
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.upstream.codex.failures import CodexGone
from isthmus.upstream.codex.options import CodexOptions
from isthmus.upstream.codex.thread import CodexThread, Program
from isthmus.upstream.codex.turns import TurnMessage

_RESTING: Final = ("idle", "held")


class _Kept:
    """A thread at a place, and the alarm that ends its stay."""

    __slots__ = ("alarm", "head", "key", "thread")

    def __init__(self, thread: CodexThread, key: str, head: str, seconds: float) -> None:
        self.thread, self.key, self.head = thread, key, head
        self.alarm = asyncio.get_running_loop().call_later(seconds, thread.close)


class Threads:
    def __init__(self, options: CodexOptions) -> None:
        self._options = options
        self._all: dict[CodexThread, _Kept | None] = {}
        """Every thread that the process knows, and where it is kept while nobody has it."""
        self._named: dict[str, CodexThread] = {}
        self._places: dict[str, _Kept] = {}

    def __len__(self) -> int:
        return len(self._all)

    async def open(self, program: Program, spec: ThreadSpec, history: Sequence[JsonObject] = ()) -> CodexThread:
        """A new thread, busy; with `history`, the model sees those Responses items as what went before."""
        await self._make_room()
        thread = CodexThread(program, spec, self._moved, queue_size=self._options.queue_size)
        self._all[thread] = None
        try:
            await thread.open()
            await thread.inject(history)
        except BaseException:
            thread.close()
            raise
        return thread

    def take(self, key: str, head: str) -> CodexThread | None:
        """The thread that rests at this place, busy from now on; `None` where there is none with this head."""
        kept = self._places.get(key)
        if kept is None:
            return None
        if kept.head != head:
            if kept.thread.state == "held":
                kept.thread.close()  # the client wants something else now: nobody will answer this turn
            return None
        kept.thread.take()
        return kept.thread

    def keep(self, thread: CodexThread, key: str, head: str) -> None:
        """Bring a thread back whose leg was read to its good end. Another one with the same past is of no use then."""
        if (before := self._places.get(key)) is not None:
            before.thread.close()
        thread.rest()
        seconds = self._options.hold if thread.state == "held" else self._options.idle
        self._all[thread] = self._places[key] = _Kept(thread, key, head, seconds)

    def hear(self, thread_id: str, message: TurnMessage) -> bool:
        thread = self._named.get(thread_id)
        return thread is not None and thread.hear(message)

    def lose(self, gone: CodexGone) -> None:
        for thread in list(self._named.values()):
            thread.lose(CodexGone(gone.message, stderr=gone.metadata.get("stderr", "")))  # each raises its own

    async def aclose(self) -> None:
        """After the process: whoever was taking leave has been told that it is gone."""
        for thread in list(self._all):
            thread.close()
        if parting := [thread.parting for thread in self._all if thread.parting is not None]:
            await asyncio.wait(parting)

    def _moved(self, thread: CodexThread) -> None:
        if thread.state not in _RESTING and (kept := self._all.get(thread)) is not None:
            kept.alarm.cancel()
            del self._places[kept.key]
            self._all[thread] = None
        if thread.state == "busy":
            self._named[thread.id] = thread
        elif thread.state == "closed":
            self._all.pop(thread, None)
            self._named.pop(thread.id, None)

    async def _make_room(self) -> None:
        while len(self._all) >= self._options.max_threads:
            resting = [thread for thread in self._all if thread.state in _RESTING]
            if resting:
                spared = min(resting, key=lambda thread: (thread.state == "held", thread.since))
                spared.close()
                resting = [spared]
            leaving = [thread.parting for thread in resting or self._all if thread.parting is not None]
            if not leaving:
                raise UpstreamFailed(
                    f"all {self._options.max_threads} codex threads are busy; try again soon",
                    code="server_is_overloaded",
                    status=503,
                    retry_after=1.0,
                )
            await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
