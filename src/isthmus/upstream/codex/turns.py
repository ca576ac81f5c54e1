"""One turn's mailbox: messages held from before `turn/start` is answered, bounded, closed exactly once."""

from __future__ import annotations

import asyncio
from collections import deque

from isthmus.errors import UpstreamFailed
from isthmus.upstream.codex.rpc import Notification, Request

TurnMessage = Request | Notification


class TurnQueue:
    """Opened before the turn is asked for, so that nothing which precedes the answer is lost."""

    def __init__(self, size: int) -> None:
        self._messages: deque[TurnMessage] = deque()
        self._size = size
        self._ready = asyncio.Event()
        self._failure: UpstreamFailed | None = None

    def put(self, message: TurnMessage) -> None:
        if self._failure is not None:
            return
        if len(self._messages) >= self._size:
            self._messages.clear()
            self.fail(UpstreamFailed(f"the reader of a codex turn fell {self._size} messages behind"))
            return
        self._messages.append(message)
        self._ready.set()

    def fail(self, failure: UpstreamFailed) -> None:
        """What came before is still delivered; then `get` raises this, once and for all."""
        self._failure = self._failure or failure
        self._ready.set()

    async def get(self) -> TurnMessage:
        while not self._messages:
            if self._failure is not None:
                raise self._failure
            self._ready.clear()
            await self._ready.wait()
        return self._messages.popleft()
