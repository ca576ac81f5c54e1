"""aiohttp's client behind the wire's port, for the ways that lead through a proxy.

In: a request. Out: an answer whose head is there. Whatever the library raises leaves as `Trouble`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import TYPE_CHECKING, Final

import aiohttp
from yarl import URL

from isthmus.upstream.guard import Guard
from isthmus.upstream.lean.address import take_apart
from isthmus.upstream.lean.answer import MAX_PIECE
from isthmus.upstream.lean.client import LONGEST_IDLE
from isthmus.upstream.lean.head import ACCEPTED
from isthmus.upstream.proxied.connections import Connector, Guarded, is_stale, read_rest
from isthmus.upstream.proxied.trouble import explain
from isthmus.upstream.trouble import Stale, unreachable

if TYPE_CHECKING:
    from isthmus.upstream.endpoint import Endpoint

_AT_ONCE: Final = 1024 * 1024
"""Largest body that is written in one go. aiohttp puts it behind the head first, as one more copy, and all of it waits
in the transport; a larger one goes piece by piece, as the socket takes it."""


class ProxiedClient:
    def __init__(self, endpoint: Endpoint, headers: Mapping[str, Mapping[str, str]], proxy: str | None) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._proxy = proxy
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    def spell(self, method: str, url: str, other: str) -> str:
        """The address as it will be asked for."""
        return take_apart(url, self._endpoint.query).url

    async def ask(
        self, method: str, url: str, data: bytes | None, other: str, more: Mapping[str, str] | None
    ) -> Answer:
        """`other`: under which name the headers are known; `more`: those of this request alone."""
        body, head = (data, more) if len(data or b"") <= _AT_ONCE else _in_pieces(data or b"", more)
        address = URL(url).extend_query(self._endpoint.query) if self._endpoint.query else URL(url)
        try:
            return Answer(
                await self._session(other).request(
                    method, address, data=body, headers=head, proxy=self._proxy, allow_redirects=False
                )
            )
        except aiohttp.ConnectionTimeoutError:
            failure = unreachable(f"no connection within {self._endpoint.patience.connect:g} s")
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            if is_stale(error):
                raise Stale from None
            failure = explain(error, begun=False)
        raise failure

    async def aclose(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _session(self, other: str) -> aiohttp.ClientSession:
        session = self._sessions.get(other)
        if session is None:
            endpoint = self._endpoint
            guard = None if endpoint.allows is None else Guarded(Guard(endpoint.allows, endpoint.lookup))
            session = self._sessions[other] = aiohttp.ClientSession(
                # No limit of its own: it would make requests wait inside our time for the provider.
                connector=Connector(limit=0, ssl=endpoint.verify_tls, keepalive_timeout=LONGEST_IDLE, resolver=guard),
                cookie_jar=aiohttp.DummyCookieJar(),  # one caller's must not go along with another's request
                headers={"accept-encoding": ACCEPTED, **self._headers[other]},  # not all that may be installed
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.patience.connect),
                auto_decompress=True,
                read_bufsize=MAX_PIECE,
            )
        return session


class Answer:
    __slots__ = ("_content", "_piece", "_response", "headers", "kind", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self._piece = b""
        """Read, and not yet taken."""
        self.status = response.status
        self.kind = response.content_type
        self.headers: Mapping[str, str] = response.headers

    @property
    def over(self) -> bool:
        return not self._piece and self._content.at_eof()

    def take(self) -> bytes:
        piece, self._piece = self._piece, b""
        try:
            return piece or self._content.read_nowait(MAX_PIECE)
        except (aiohttp.ClientError, OSError) as error:
            return self._end(error)

    def news(self) -> Awaitable[None] | None:
        self._piece = self.take()
        return None if self._piece or self.over else self._read()

    async def _read(self) -> None:
        try:
            self._piece = await self._content.read(MAX_PIECE)
        except (aiohttp.ClientError, OSError) as error:
            self._piece = self._end(error)

    def _end(self, error: Exception) -> bytes:
        """What had come is read before that is told; the error comes again when it is read."""
        rest = read_rest(self._content, MAX_PIECE)
        if rest:
            return rest
        if isinstance(error, TimeoutError):
            raise error
        raise explain(error, begun=True) from None

    def fail(self, error: Exception) -> None:
        self._content.set_exception(error)

    def close(self) -> None:
        self._response.close()


def _in_pieces(data: bytes, headers: Mapping[str, str] | None) -> tuple[AsyncIterator[memoryview], dict[str, str]]:
    """A body, and the head that keeps it from being sent as chunks, which some servers refuse."""

    async def pieces() -> AsyncIterator[memoryview]:
        whole = memoryview(data)
        for start in range(0, len(data), _AT_ONCE // 4):
            yield whole[start : start + _AT_ONCE // 4]
            await asyncio.sleep(0)  # where the socket takes everything, others still have their turn

    return pieces(), {**(headers or {}), "content-length": str(len(data))}
