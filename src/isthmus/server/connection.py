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
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import unquote

import httptools
import msgspec
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from isthmus.config.schema import Server
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.log import tell
from isthmus.server.cycle import Cycle, Flow
from isthmus.server.errors import error_body, error_headers, overloaded
from isthmus.server.http import HEADERS, by_name
from isthmus.server.leaving import LEAVING
from isthmus.upstream.clocks import Silence

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
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_SHORT: Final = 256
"""Bytes of an address that is remembered as it was read."""
_REMEMBERED: Final = 256


class Connection(HttpToolsProtocol):
    # With more than thirty fields in its dict, each instance would have a table of their names for itself: a kilobyte.
    __slots__ = ("_behind", "_clock", "_idle", "_key", "_overhead", "_refused", "_shaking", "url")
    limits: ClassVar[Server] = Server()
    remembers = False
    """Whether something is lost with it, although nothing is under way."""
    _upgraded: ClassVar[type[Upgraded] | None] = None
    cycle: Cycle | None  # type: ignore[assignment]
    """The request that came last; with those before it that are not answered yet, where several came at once."""

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
        self.flow = Flow(self.transport)
        self._idle = Silence(self.timeout_keep_alive, transport.close)
        """How long it waits for its next request; one timer, set anew only when it rings too early."""
        self._overhead = 0
        """Bytes of the request under way that are not its body."""
        self._clock: asyncio.TimerHandle | None = None
        self._refused = False
        self._key: bytes | None = None
        """Of the WebSocket handshake that was read last; `None`: it was none."""
        self._shaking: Sequence[tuple[bytes, bytes]] = ()
        """The headers of that handshake."""
        self._behind: list[tuple[Cycle, Scope]] = []
        self.pipeline = self._behind  # type: ignore[assignment]  # uvicorn's own would take half a kilobyte of each
        self._await_head()
        if len(self.connections) > self.limits.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self.connections.discard(self)
        self._idle.stop()
        if self.flow is not None:
            self.flow.resume_writing()
        if self.cycle is not None:
            if self.cycle.response_complete:
                self.cycle.wake()
            else:
                self.cycle.tell()
        self.transport.close()
        self.parser = None  # type: ignore[assignment]  # it refers to us

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return  # what still comes is not read
        self._idle.end()
        self._overhead += len(data)
        if self._answered and data.find(b"h2c", 0, data.find(b"\r\n\r\n") + 1 or len(data)) >= 0:  # in a head alone
            data = _without_upgrade(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._key is not None:
                self.handle_websocket_upgrade()
        except httptools.HttpParserError:
            self._refuse_broken()
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

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._stop_clock()
        headers, self.headers = self.headers, []  # trailers are read into it: they are none, least of all checked ones
        parser, named = self.parser, by_name(headers)
        large = self._overhead > self.limits.max_head and _head_size(self.url, headers) > self.limits.max_head
        self._overhead = 0
        self._key = None if large or b"upgrade" not in named else self._read_handshake(headers)
        if self._key is not None:
            self._shaking = headers
            return
        method, version = parser.get_method().decode("ascii"), parser.get_http_version()
        path, raw_path, query = (_read_short_url if len(self.url) <= _SHORT else _read_url)(self.url)
        before, expects = self.cycle, named.get(b"expect")
        self.cycle = cycle = Cycle(
            self.transport,
            self.flow,
            self.on_response_complete,
            sends_body=method != "HEAD",
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            expects=expects is not None and expects.lower() == b"100-continue",
        )
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": method,
            "root_path": "",
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": headers,
            HEADERS: named,
            LEAVING: cycle,
        }
        if large:
            scope[REFUSED] = _too_large(self.limits.max_head)
        if before is None or before.response_complete:
            self._begin(cycle, scope)
        else:  # asked before the answer to the one before it: it waits, and so does what is behind it
            self.flow.pause_reading()
            self._behind.append((cycle, scope))

    def on_body(self, body: bytes) -> None:
        self._overhead = max(self._overhead - _FRAMING * len(body), 0)
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self._key is not None:
            return
        if cycle.come(body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        self._overhead = 0
        cycle = self.cycle
        if self._key is not None or cycle is None:
            return
        if cycle.response_complete:  # what was answered early has come to its end
            self._await_head()
        else:
            cycle.more_body = False
            cycle.wake()

    def _begin(self, cycle: Cycle, scope: Scope) -> None:
        task = self.loop.create_task(cycle.run(self.app, scope))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._behind:
            self._begin(*self._behind.pop(0))
        else:
            self._idle.begin()
        if self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:
            self._await_head()  # the rest is read, or the client might never see the answer, but not for ever

    # ── WebSocket ──────────────────────────────────────────────────────────────────────────────────

    def _read_handshake(self, headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
        """The key of a request to go on in WebSocket that can be granted; whatever else asks for it is answered over
        HTTP, by the app, with what is wrong."""
        if not self.limits.websockets or not _asks_for_socket(headers):
            return None
        return handshake_key(self.parser.get_method(), self.parser.get_http_version(), headers)

    def handle_websocket_upgrade(self) -> None:
        if not self._answered:  # asked behind a request that is still being answered: there is no way back from it
            self._refuse(RequestRefused("finish the request before the WebSocket handshake", code="invalid_http"))
            return
        try:
            url = httptools.parse_url(self.url)
        except httptools.HttpParserInvalidURLError:
            self._refuse_broken()
            return
        path = url.path.decode("latin-1")
        facts = {"path": unquote(path), "raw_path": url.path, "query_string": url.query or b""}
        self.connections.discard(self)
        protocol = self._find_upgraded()(config=self.config, server_state=self.server_state, app_state=self.app_state)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        assert self._key is not None
        protocol.begin(self._key, {**facts, "headers": self._shaking})

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

    def _refuse_broken(self) -> None:
        self._refuse(RequestRefused("this is not a request in HTTP/1.1, or a broken one", code="invalid_http"))

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


def _read_url(url: bytes) -> tuple[str, bytes, bytes]:
    """Path, the same as it came, and query. Raises what the parser takes for a broken request."""
    parsed = httptools.parse_url(url)
    return unquote(parsed.path.decode("ascii")), parsed.path, parsed.query or b""


_read_short_url: Final = lru_cache(_REMEMBERED)(_read_url)
"""Clients ask for the same few."""


def _head_size(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)


def _asks_for_socket(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    connection, upgrade = b"", b""
    for name, value in headers:
        if name == b"connection":
            connection = value
        elif name == b"upgrade":
            upgrade = value
    return upgrade.lower() == b"websocket" and b"upgrade" in map(bytes.strip, connection.lower().split(b","))


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
