"""Kept connections that turn out to be dead, replaced at once.

A server that closes a connection which idled may do so just as our next request is on its way. The request then ends
without a byte of an answer, though nothing is wrong with it: it is sent again on the next connection, without a wait
and without counting as an attempt. On a connection that was opened for it, the same is a failure. aiohttp does this by
itself for GET and its like, not for POST, which might have been carried out; ours only asks for text.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

log = logging.getLogger("isthmus.upstream")

_used_before: ContextVar[bool] = ContextVar("used_before", default=False)
"""Whether the connection of this task's request had served another one."""


class Connector(aiohttp.TCPConnector):
    """A pool of connections that tells which of them were used before."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout) -> Connection:  # noqa: ASYNC109  # theirs
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        _used_before.set(protocol in self._used)
        self._used.add(protocol)
        return connection


async def send_over(send: Callable[[], Awaitable[aiohttp.ClientResponse]], place: str) -> aiohttp.ClientResponse:
    """The answer to what `send` sends through a `Connector`; sent again for each dead connection that it was given.

    Each one is gone afterwards, and a new connection is not dead: there is an end.
    """
    while True:
        _used_before.set(False)
        try:
            return await send()
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientConnectionResetError):
            if not _used_before.get():
                raise
            log.info("upstream.connection.dead provider=%s", place)
