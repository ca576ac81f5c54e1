"""`/v1/responses` over WebSocket: who may come in, who is in, and how they leave.

In: a handshake that the connection has read. Everything that is checked of a request is checked before the 101, and a
refusal is an ordinary answer with a status and an error body.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from starlette.types import Receive, Scope, Send

from isthmus.errors import IsthmusError
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.local import LocalTurns
from isthmus.log import tell
from isthmus.server.connection import SOCKET
from isthmus.server.errors import draining
from isthmus.server.exchange import exchange_of
from isthmus.server.lanes import Session
from isthmus.server.options import ServerOptions
from isthmus.server.responses import asks_strict
from isthmus.server.room import Room

log = logging.getLogger("isthmus.server")


class Sockets:
    def __init__(self, gateway: Gateway, options: ServerOptions, room: Room) -> None:
        self.gateway = gateway
        """The one that serves now: a socket may live longer than a configuration."""
        self.options = options
        self._room = room
        self._local = LocalTurns(options.websocket.max_state, options.websocket.max_states)
        self._open: dict[Session, asyncio.Task[object]] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One socket, from its 101 to its end."""
        exchange, strict, began = exchange_of(scope), asks_strict(scope), time.perf_counter()
        session = Session(
            self,
            self._room,
            self._local.connect(),
            scope[SOCKET],
            exchange.caller,
            path=scope["path"],
            peer=exchange.peer,
            strict=strict,
        )
        scope[SOCKET].serving = session
        await receive()
        await send({"type": "websocket.accept"})
        facts: dict[str, Any] = {"id": exchange.id, "caller": exchange.caller.owner, "peer": exchange.peer or None}
        tell(log, "info", "socket.opened", **facts, client=exchange.caller.client.name or None)
        task = asyncio.current_task()
        assert task is not None
        self._open[session] = task
        try:
            if self.gateway.draining:  # since the handshake was looked at
                session.leave(draining())
            code = await session.serve(receive)
        finally:
            del self._open[session]
        seconds = round(time.perf_counter() - began, 1)
        tell(log, "info", "socket.closed", **facts, code=code, answered=session.answered, seconds=seconds)

    def adopt(self, gateway: Gateway, options: ServerOptions) -> None:
        """Another configuration counts from the next request of each socket on; whoever came with a key that it does
        not know has to come again."""
        self.gateway, self.options = gateway, options
        for session in list(self._open):
            try:
                options.keys.still(session.caller)
            except IsthmusError as error:
                session.leave(error)

    def leave(self) -> None:
        """The gateway shuts down: idle sockets are closed now, the others when what runs there has ended."""
        for session in list(self._open):
            session.leave(draining())

    async def none(self, patience: float) -> None:
        """Wait until all are closed; not for ever."""
        if self._open:
            await asyncio.wait(list(self._open.values()), timeout=patience)
