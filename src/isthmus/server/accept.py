"""The way in: all who wait at the door are let in at once.

uvloop accepts one connection in each turn of its loop. With a thousand busy streams a turn takes a tenth of a second,
and the hundredth newcomer would wait for a hundred turns. Here one turn takes them all, up to a bound that leaves the
streams their share.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

from isthmus.log import tell

log = logging.getLogger("isthmus.server")

AT_ONCE: Final = 256
"""Connections that are accepted in one turn of the loop."""
_REST: Final = 1.0
"""Seconds without a look at the door, where the system has no room for another connection."""


class Acceptor:
    """Hands every connection of one listening socket to a protocol of its own."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        *,
        tls: ssl.SSLContext | None = None,
        handshake: float = 30.0,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make = make
        self._tls: dict[str, Any] = {"ssl": tls, "ssl_handshake_timeout": handshake} if tls is not None else {}
        self._entering: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Raises `NotImplementedError` where the loop knows no such thing (Windows)."""
        self._resting = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Nobody else comes in; whoever is in stays. The socket is its owner's to close."""
        if self._resting is not None:
            self._resting.cancel()
        self._loop.remove_reader(self._listener.fileno())
        for task in self._entering:
            task.cancel()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # gone before we looked
            except OSError as error:
                tell(log, "error", "server.cannot_accept", reason=error.strerror, again_in=_REST)
                self._loop.remove_reader(self._listener.fileno())
                self._resting = self._loop.call_later(_REST, self.open)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._enter(connection))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection, **self._tls)
        except OSError as error:  # also a handshake that failed, or took too long
            tell(log, "debug", "connection.failed", reason=error)
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
