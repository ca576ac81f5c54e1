"""One lane of a socket: the frames that wait there, the words for what runs, and the way to tell its events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec

from isthmus.protocol.events import Event
from isthmus.server.frames import Asked
from isthmus.server.steering import Steer, Steering
from isthmus.server.upgraded import Upgraded

_encode: Final = msgspec.json.Encoder().encode


class Waiting(msgspec.Struct):
    """A frame that waits for its turn, and the room that it takes."""

    asked: Asked
    room: ExitStack
    words: Sequence[Steer] = ()
    """Those that are said in it."""
    ours: bool = False
    """Whether nobody has asked for it: it follows a response that was steered."""


class OpenLane:
    __slots__ = ("_socket", "late", "name", "steering", "task", "telling", "waiting")

    def __init__(self, name: str, socket: Upgraded) -> None:
        self.name = name
        self._socket = socket
        self.steering = Steering()
        self.telling = False
        """Whether something is being told, to a client that takes its time."""
        self.late: list[Steer] = []
        """Words that came meanwhile: they are answered between two batches, so that events keep their order."""
        self.waiting: deque[Waiting] = deque()
        self.task: asyncio.Task[None] | None = None
        """Answers what waits; `None`: nothing does, and nothing runs."""

    async def tell(self, events: Sequence[Event]) -> None:
        """Events of what runs here. Raises `ClientLeft`."""
        self.telling = True
        try:
            await self.write(events)
        finally:
            self.telling = False

    async def write(self, events: Sequence[Event]) -> None:
        """Events that are told whether or not something else is being told."""
        named: Sequence[Any] = [{**event, "stream_id": self.name} for event in events] if self.name else events
        await self._socket.write([_encode(event) for event in named])

    def clear(self) -> None:
        """Nothing of it is answered any more."""
        self.steering.give(None)
        for waiting in self.waiting:
            waiting.room.close()
        self.waiting.clear()
