"""One client's connection: uvicorn's, with bounds on everything that is not a body.

A head has a size and a time, and so has what comes behind it: chunk framing and trailers are small beside their body,
and the rest of a body that was answered early is not read for ever. When all connections are in use, one from which
we still wait for a whole request makes room for the next: whoever has asked is never pushed out by whoever has not.
"""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, cast
from urllib.parse import unquote

import httptools
import msgspec
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from isthmus.config.schema import Server
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.log import tell
from isthmus.server.bodies import WHOLE
from isthmus.server.errors import error_body, error_headers, overloaded
from isthmus.server.leaving import leaving_of, watch

if TYPE_CHECKING:  # loaded when the first client asks for it
    from isthmus.server.upgraded import Upgraded

log = logging.getLogger("isthmus.server")

SOCKET: Final = "isthmus.socket"
"""Where in a scope the connection of a WebSocket lies."""
REFUSED: Final = "isthmus.refused"
"""Where in a scope an error lies that was found before there was anybody to answer."""
_LINGER: Final = 1.0
"""Seconds for which a refused client is listened to, and nothing of it is read."""
_UPGRADE: Final = re.compile(rb"\r\nupgrade:(?=[ \t]*h2c)", re.IGNORECASE)
_FRAMING: Final = 8
"""Bytes of chunk framing that one byte of a body may need: the smallest chunks take five."""


class Connection(HttpToolsProtocol):
    limits: ClassVar[Server] = Server()
    remembers = False
    """Whether something is lost with it, although nothing is under way."""
    _upgraded: ClassVar[type[Upgraded] | None] = None
    _overhead = 0
    """Bytes of the request under way that are not its body."""
    _clock: asyncio.TimerHandle | None = None
    _refused = False
    _key: bytes | None = None
    """Of the WebSocket handshake that was read last; `None`: it was none."""

    @classmethod
    def within(cls, limits: Server) -> type[Connection]:
        return type(cls.__name__, (cls,), {"limits": limits})

    @classmethod
    def adopt(cls, limits: Server) -> None:
        """Other limits, from the next byte on; for the class that `within` made."""
        cls.limits = limits
        if cls._upgraded is not None:
            cls._upgraded.limits = limits

    @property
    def owes(self) -> bool:
        """Whether we wait for the client, not the client for us."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def push_out(self) -> None:
        self.transport.close()

    # ── the transport's side ───────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._await_head()
        if len(self.connections) > self.limits.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)
        if self.cycle is not None and not self.cycle.response_complete:
            leaving = leaving_of(cast(Scope, self.cycle.scope))
            if leaving is not None:
                leaving.tell()

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return  # what still comes is not read
        self._overhead += len(data)
        if b"h2c" in data and self._answered:
            data = _without_upgrade(data)
        super().data_received(data)
        if self._overhead > self.limits.max_head:
            self._refuse(_too_large(self.limits.max_head))
        elif self._overhead and self._clock is None and self._answered:
            self._await_head()

    def _make_room(self) -> None:
        owing = [each for each in self._others() if each.owes and not each.transport.is_closing()]
        if owing:
            # A socket that is idle remembers something: it goes last.
            other = next((each for each in owing if not each.remembers), owing[0])
            tell(log, "debug", "connection.pushed_out", client=other.client, limit=self.limits.max_connections)
            other.push_out()
            return
        self._refuse(overloaded(f"all {self.limits.max_connections} connections are in use (`server.max_connections`)"))

    def _others(self) -> Iterator[Connection | Upgraded]:
        for other in self.connections:
            if other is not self:
                yield cast("Connection | Upgraded", other)

    # ── the parser's side ──────────────────────────────────────────────────────────────────────────

    def on_headers_complete(self) -> None:
        self._stop_clock()
        if self._overhead > self.limits.max_head and self._head_size() > self.limits.max_head:
            self.scope[REFUSED] = _too_large(self.limits.max_head)  # type: ignore[typeddict-unknown-key]
        self._overhead = 0
        self._key = self._read_handshake()
        watch(cast(Scope, self.scope))
        super().on_headers_complete()
        self.headers = []  # trailers are read into it: they are no headers, least of all after those were checked

    def on_body(self, body: bytes) -> None:
        self._overhead = max(self._overhead - _FRAMING * len(body), 0)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._overhead = 0
        self.scope[WHOLE] = True  # type: ignore[typeddict-unknown-key]
        super().on_message_complete()
        if self._key is None and self.cycle.response_complete:  # what was answered early has come to its end
            self._stop_clock()
            self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            self._await_head()  # the rest is read, or the client might never see the answer, but not for ever

    def send_400_response(self, msg: str) -> None:
        self._refuse(RequestRefused("this is not a request in HTTP/1.1, or a broken one", code="invalid_http"))

    # ── WebSocket ──────────────────────────────────────────────────────────────────────────────────

    def _read_handshake(self) -> bytes | None:
        """The key of a request to go on in WebSocket that can be granted; whatever else asks for it is answered over
        HTTP, by the app, with what is wrong."""
        if not self.limits.websockets or REFUSED in self.scope or super()._get_upgrade() != b"websocket":
            return None
        return handshake_key(self.parser.get_method(), self.parser.get_http_version(), self.headers)

    def _should_upgrade(self) -> bool:
        return self._key is not None

    def handle_websocket_upgrade(self) -> None:
        if not self._answered:  # asked behind a request that is still being answered: there is no way back from it
            self._refuse(RequestRefused("finish the request before the WebSocket handshake", code="invalid_http"))
            return
        try:
            url = httptools.parse_url(self.url)
        except httptools.HttpParserInvalidURLError:
            self.send_400_response("")
            return
        path = url.path.decode("latin-1")
        facts = {"path": unquote(path), "raw_path": url.path, "query_string": url.query or b""}
        self.connections.discard(self)
        protocol = self._find_upgraded()(config=self.config, server_state=self.server_state, app_state=self.app_state)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        assert self._key is not None
        protocol.begin(self._key, {**facts, "headers": self.scope["headers"]})

    @classmethod
    def _find_upgraded(cls) -> type[Upgraded]:
        if cls._upgraded is None:
            from isthmus.server.upgraded import Upgraded

            cls._upgraded = Upgraded.within(cls.limits)
        return cls._upgraded

    # ── limits ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _await_head(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(self.limits.head_timeout, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        self._clock = None
        if not self._overhead:  # nothing was asked: there is nobody to tell
            self.transport.close()
            return
        words = f"the request's head did not come within {self.limits.head_timeout:g} s"
        self._refuse(RequestRefused(f"{words}; send it at once", code="request_timeout"))

    def _refuse(self, error: IsthmusError) -> None:
        """Answer in place of the app, unless an answer is under way, and close.

        Whoever is still sending gets a moment to read the answer: the kernel throws it away where a connection is
        closed with bytes that nobody has read.
        """
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._stop_clock()
        tell(log, "info", "connection.refused", client=self.client, code=error.code, reason=error.message)
        if self._answered:
            self.transport.write(_raw_answer(error))
            if self.transport.can_write_eof():
                self.transport.write_eof()
                self._clock = self.loop.call_later(_LINGER, self.transport.close)
                return
        self.transport.close()


def handshake_key(method: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    """`None`: this is no handshake as RFC 6455 has it."""
    keys = [value for name, value in headers if name == b"sec-websocket-key"]
    versions = [value for name, value in headers if name == b"sec-websocket-version"]
    if (method, version, versions, len(keys)) != (b"GET", "1.1", [b"13"], 1):
        return None
    try:
        return keys[0] if len(b64decode(keys[0], validate=True)) == 16 else None
    except ValueError:
        return None


def _too_large(limit: int) -> RequestRefused:
    return RequestRefused(
        f"the request's line and headers are larger than {limit} bytes; send less, or raise `server.max_head`",
        code="head_too_large",
    )


def _without_upgrade(data: bytes) -> bytes:
    """The same request, without its wish to go on in HTTP/2. Java's own client asks for it in every first request, and
    the parser takes what follows, the body, for HTTP/2 already."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-upgrade:", head, 1) + end + rest


def _raw_answer(error: IsthmusError) -> bytes:
    body = msgspec.json.encode(error_body(error))
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **error_headers(error),
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[error.meaning.status] + lines.encode("latin-1", "replace") + b"\r\n" + body
