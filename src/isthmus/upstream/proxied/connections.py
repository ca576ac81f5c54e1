"""aiohttp's connections: which are dead, what breaks HTTP, and how many answers come before the answer.

They are made to lead only where somebody may be called (`Guarded`), and to tell three things that it keeps to
itself. Whether a request ended without a byte of an answer on a connection that had served before: then the connection
was dead, not the server (`is_stale`). That an answer breaks HTTP's rules, in words of ours (`Malformed`), also in the
middle of a body, where aiohttp leaves its reader waiting (seen with 3.14.5, 2026-11-16). And that there is no end of
informational answers (1xx). No other file knows its insides.
"""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import is_ip_address
from aiohttp.http_exceptions import HttpProcessingError

from isthmus.upstream.guard import Guard
from isthmus.upstream.lean.line import MAX_INFORMATIONAL

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

_SWITCHING: Final = 101
_ENDS: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_ENCODING: Final = re.compile(r"\b(br|zstd|gzip|deflate)\b")

_current: ContextVar[Handler | None] = ContextVar("current", default=None)
"""The connection that this task's request was last given."""


class Malformed(aiohttp.ClientError):
    """An answer that breaks the rules of HTTP; its words hold nothing of the answer."""


class Handler(ResponseHandler):
    """One connection."""

    served = 0
    """Requests that it was given."""
    informational = 0
    """Answers of that kind to the last of them."""

    def begin(self) -> None:
        self.served += 1
        self.informational = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        code: int = data[0].code
        if 100 <= code < 200 and code != _SWITCHING:
            self.informational += 1
        if self.informational <= MAX_INFORMATIONAL:
            super().feed_data(data, size)
        elif self.transport is not None and not self.transport.is_closing():
            self.set_exception(Malformed(f"it sent more than {MAX_INFORMATIONAL} informational answers (1xx)"))
            self.transport.abort()

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        if isinstance(exc, HttpProcessingError):
            exc = Malformed(name_fault(exc.message))
            if self._payload is not None and not self._payload.is_eof():  # its reader is told by nobody else
                self._payload.set_exception(exc)
        super().set_exception(exc, *cause)


class Guarded(AbstractResolver):
    """Asks the guard, in the library's shape."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in await self.guard.find(host, port)
        ]

    async def close(self) -> None: ...


class Connector(aiohttp.TCPConnector):
    """A pool of such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        made: type[ResponseHandler] = Handler
        self._factory = functools.partial(made, loop=self._loop)

    async def _resolve_host(self, host: str, port: int, traces: Sequence[Trace] | None = None) -> list[ResolveResult]:
        """aiohttp asks no resolver about a host that is an address already: the guard is asked all the same."""
        if isinstance(self._resolver, Guarded) and is_ip_address(host):
            self._resolver.guard.admit(host)
        return await super()._resolve_host(host, port, traces)

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout) -> Connection:  # noqa: ASYNC109  # theirs
        _current.set(None)  # one that cannot be opened is not the one before
        connection = await super().connect(req, traces, timeout)
        handler = connection.protocol
        if isinstance(handler, Handler):
            handler.begin()
            _current.set(handler)
        return connection


def is_stale(error: BaseException) -> bool:
    """Whether this task's request failed only because it was given a kept connection that was dead."""
    handler = _current.get()
    if handler is None or handler.served < 2 or not isinstance(error, _ENDS):
        return False
    # The library's words, or what had come of the answer's head: then the server was there, and had begun.
    return not isinstance(error, aiohttp.ServerDisconnectedError) or isinstance(error.message, str)


def read_rest(content: aiohttp.StreamReader, most: int) -> bytes:
    """What had come before a body broke off and was not read yet: the library gives its error first, and no more."""
    return content._read_nowait(most)


def name_fault(words: str) -> str:
    """What is wrong with an answer, from the parser's words: those repeat what was sent, and that may hold anything."""
    said = words.partition("b'")[0].lower()
    if "content-encoding" in said:
        found = _ENCODING.search(said)
        return f"its answer is compressed{f' as `{found[1]}`' if found else ''}, which was not asked for"
    if "chunk" in said:
        return "the chunks of its answer are broken"
    if "content-length" in said:
        return "its `content-length` is wrong"
    if "got more than" in said or "too many" in said:
        return "its headers are too long, or too many"
    if "status line" in said or "expected http" in said:
        return "its answer is not HTTP, or is longer than its `content-length`"
    return "its answer is not HTTP"
