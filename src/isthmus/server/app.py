"""Routes → handlers. Unknown paths are 404, wrong methods 405 with `Allow`, our own bugs 500 without details."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

from starlette.types import Receive, Scope, Send

from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.log import tell
from isthmus.server.answer import Answer
from isthmus.server.anthropic import speaks_messages
from isthmus.server.bodies import BODY, Bodies, Body
from isthmus.server.callers import is_page
from isthmus.server.connection import REFUSED, SOCKET
from isthmus.server.cors import preflight_headers
from isthmus.server.errors import draining, internal_error
from isthmus.server.exchange import EXCHANGE, Exchange, exchange_of, read_client_id
from isthmus.server.familiar import Familiar
from isthmus.server.http import ClientLeft, header, send_anthropic_error, send_error, send_in_two, send_json
from isthmus.server.leaving import leaving_of
from isthmus.server.options import ServerOptions
from isthmus.server.origin import check_origin, is_here
from isthmus.server.paths import clean_path, nothing_there, spellings
from isthmus.server.readiness import readiness_of
from isthmus.server.room import Room
from isthmus.server.routes import RESPONSES, SEARCH, Handler, Route, Routes, all_routes
from isthmus.server.scopes import check_endpoint

if TYPE_CHECKING:
    from isthmus.server.sockets import Sockets

log = logging.getLogger("isthmus.server")

ENDPOINT: Final = "isthmus.endpoint"
"""Where a scope has the endpoint that its route belongs to."""
_TRACEPARENT: Final = 128
"""Characters of a `traceparent` that are looked at; it has 55."""


def create_app(
    gateway: Gateway,
    options: ServerOptions = ServerOptions(),  # noqa: B008  # frozen
    before: App | None = None,
) -> App:
    """The whole HTTP surface as one ASGI application. `before`: whose place it takes; who is in stays in."""
    readiness = readiness_of(gateway, options.missing_keys, options.server.ready_interval)
    if before is None:
        guests = Guests(Room(options.limits, options.vitals, options.server.max_concurrent))
    else:
        guests = before.guests
        guests.adopt(gateway, options)
    app = App(gateway, options, all_routes(gateway, options, readiness), guests, readiness.aclose)
    if options.meters is not None and before is None:
        options.meters.watch(guests.look)
    return app


class Guests:
    """Who is in, whichever configuration they came under."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.sockets: Sockets | None = None
        """Made when the first client asks for one: a server starts sooner without."""

    def adopt(self, gateway: Gateway, options: ServerOptions) -> None:
        self.room.adopt(options.limits, options.server.max_concurrent)
        if self.sockets is not None:
            self.sockets.adopt(gateway, options)

    def look(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """What the listening side knows, for `/metrics`."""
        yield "isthmus_requests_in_flight", (), self.room.active
        yield "isthmus_request_bytes", (), self.room.held
        yield "isthmus_websockets", (), len(self.sockets or ())
        yield "isthmus_loop_lag_worst_seconds", (), self.room.worst_lag


class App:
    """Finds the handler, reads the body, counts places, turns errors into answers."""

    def __init__(
        self,
        gateway: Gateway,
        options: ServerOptions,
        routes: Routes,
        guests: Guests,
        aclose: Callable[[], Awaitable[None]],
    ) -> None:
        self.aclose = aclose
        """Ends what looks at the gateway's parts; to be called before those are closed."""
        self._gateway = gateway
        self._options = options
        self._bodies = Bodies(options.server)
        self._familiar = Familiar(options)
        self.guests = guests
        self._room = guests.room
        self.routes = routes
        """Path → method → handler: all that there is."""
        self._exact = {path: methods for path, methods in routes.items() if "(" not in path}
        self._patterns = [(re.compile(path), methods) for path, methods in routes.items() if "(" in path]

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            return self._serve(scope, receive, send, self._handle)
        if scope["type"] == "lifespan":
            return _lifespan(receive, send)
        # A handshake is a GET until it is granted; a refusal is answered as one.
        return self._serve({**scope, "method": "GET"}, receive, send, self._upgrade)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, handle: Callable[[Scope, Receive, Answer], Awaitable[None]]
    ) -> None:
        scope["path"] = path = clean_path(scope["path"], self._options.prefix)
        scope[EXCHANGE] = exchange = Exchange(scope["method"], path, _peer(scope), self._gateway.observer)
        exchange.anthropic = speaks_messages(scope)
        http, users = scope["type"] == "http", self._gateway.users
        answer = Answer(send, exchange, leaving_of(scope), "" if http else "websocket.")
        if http:  # a socket outlives a configuration
            users.begin(exchange)
        try:
            exchange.client_id = read_client_id(scope)
            await handle(scope, receive, answer)
        except IsthmusError as error:
            exchange.failure = error
            if exchange.status is None:
                await self._send_error(answer, error, exchange)
        except ClientLeft:
            exchange.left = True
        except Exception as error:
            tell(log, "error", "request.broken", id=exchange.id, trace=error)
            if exchange.status is not None:
                raise
            await send_json(answer, 500, internal_error(exchange.id if exchange.anthropic else None))
        finally:
            exchange.tell()
            # Whoever still has the scope must not keep all that was made for it; a failure keeps the frames that it
            # rose through, with what they held.
            exchange.run = exchange.failure = None
            users.end(exchange)

    async def _send_error(
        self, answer: Answer, error: IsthmusError, exchange: Exchange, headers: dict[str, str] | None = None
    ) -> None:
        if exchange.path.endswith(SEARCH) and error.meaning.status not in (401, 403, 404, 405):
            from isthmus.server.search import send_in_words

            await send_in_words(answer, error)
        elif exchange.anthropic:
            await send_anthropic_error(answer, error, exchange.id, headers)
        else:
            await send_error(answer, error, headers, specified=exchange.caller.client.specified)

    async def _handle(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        if REFUSED in scope:
            raise scope[REFUSED]
        if scope["method"] == "GET" and _asks_for_socket(scope):
            await self._refuse_upgrade(answer)
            return
        answer.more = told = self._familiar.page(scope)
        if scope["method"] == "OPTIONS" and (asked_first := preflight_headers(scope, told)) is not None:
            await send_in_two(answer, 204, asked_first, b"")
            return
        exchange = exchange_of(scope)
        exchange.caller = self._familiar.caller(scope)
        handler = self._find(scope)
        if isinstance(handler, list):
            message = f"`{scope['method']}` is not allowed on `{scope['path']}`; use {' or '.join(handler)}"
            error = RequestRefused(message, code="method_not_allowed")
            await self._send_error(answer, error, exchange, {"allow": ", ".join(handler)})
            return
        check_endpoint(scope, scope[ENDPOINT], self._options)
        size = None
        if scope["method"] == "POST":
            self._check_drain()  # before a body that nobody wants is waited for
            body: Body | None = self._bodies.at_once(scope)
            if body is None:
                body = await self._bodies.read(scope, receive)
                self._check_drain()
            scope[BODY], size = body, len(body)
            self._room.check_places()
            self._receive(scope, exchange, body)
        with self._room.serve(size):
            await handler(scope, receive, answer)

    def _receive(self, scope: Scope, exchange: Exchange, body: Body) -> None:
        caller, tracing = exchange.caller, self._gateway.tracing
        # What a form of the page says is no request of a client's, and may well be a key.
        kept = tracing is not None and tracing.wants_all(caller.owner, caller.key, len(body)) and not is_page(scope)
        exchange.receive(len(body), header(scope, b"traceparent")[:_TRACEPARENT], body if kept else None)

    async def _upgrade(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        if not self._options.server.websockets or SOCKET not in scope:
            await self._refuse_upgrade(answer)
            return
        check_origin(scope, self._options)
        exchange = exchange_of(scope)
        exchange.caller = self._familiar.caller(scope)
        self._find(scope)
        check_endpoint(scope, scope[ENDPOINT], self._options)
        if scope["path"] != RESPONSES:
            words = f"there is no WebSocket at `{scope['path']}`; open one at `{RESPONSES}`"
            raise RequestRefused(words, code="not_found")
        self._check_drain()
        exchange.upgraded = True
        if self.guests.sockets is None:
            from isthmus.server.sockets import Sockets

            self.guests.sockets = Sockets(self._gateway, self._options, self._room)
        await self.guests.sockets.serve(scope, receive, answer)

    async def _refuse_upgrade(self, answer: Answer) -> None:
        """426 makes Codex go on over HTTP at once; after any other answer it tries again for seconds."""
        words, headers = "there are no WebSockets here; use HTTP", {"upgrade": "HTTP/1.1"}
        if self._options.server.websockets:
            words = "this is no WebSocket handshake as RFC 6455 has it, or a proxy has changed it; use HTTP"
            headers = {"upgrade": "websocket", "sec-websocket-version": "13"}
        await send_error(answer, RequestRefused(words, code="upgrade_required"), headers)

    def _check_drain(self) -> None:
        if self._gateway.draining:
            raise draining()

    def _find(self, scope: Scope) -> Handler | list[str]:
        """The handler, or the methods that the path would allow."""
        methods = self._exact.get(scope["path"]) or self._look_for(scope)
        scope[ENDPOINT] = methods.endpoint
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return methods.get(method) or sorted(methods)

    def _look_for(self, scope: Scope) -> Route:
        for path in spellings(scope["path"]):
            methods = self._match(path, scope)
            if methods is not None:
                scope["path"] = path
                return methods
        raise nothing_there(scope, self._options.prefix)

    def _match(self, path: str, scope: Scope) -> Route | None:
        methods = self._exact.get(path)
        if methods is not None:
            return methods
        for pattern, candidate in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None:
                scope["path_params"] = found.groupdict()
                return candidate
        return None


def _asks_for_socket(scope: Scope) -> bool:
    """Also where a proxy on the way has dropped half of the handshake."""
    return header(scope, b"upgrade").lower() == "websocket" or bool(header(scope, b"sec-websocket-key"))


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return "" if not client or is_here(client[0]) else str(client[0])


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
