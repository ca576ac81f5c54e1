"""Routes → handlers. Unknown paths are 404, wrong methods 405 with `Allow`, our own bugs 500 without details."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.log import tell
from isthmus.server.chat import ChatApi
from isthmus.server.errors import draining, internal_error
from isthmus.server.exchange import Exchange, exchange_of
from isthmus.server.http import ClientLeft, header, send_error, send_json
from isthmus.server.models import ModelsApi
from isthmus.server.openapi import OpenApi
from isthmus.server.options import ServerOptions
from isthmus.server.origin import check_origin
from isthmus.server.responses import ResponsesApi
from isthmus.server.status import StatusApi

log = logging.getLogger("isthmus.server")

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
_ID: Final = r"(?P<id>[^/]+)"


def create_app(gateway: Gateway, options: ServerOptions = ServerOptions()) -> ASGIApp:  # noqa: B008  # frozen
    """The whole HTTP surface as one ASGI application."""
    responses = ResponsesApi(gateway, options)
    chat = ChatApi(gateway, options)
    models = ModelsApi(gateway)
    status = StatusApi(gateway)
    routes: dict[str, dict[str, Handler]] = {
        "/v1/responses": {"POST": responses.create},
        "/v1/chat/completions": {"POST": chat.create},
        "/v1/responses/input_tokens": {"POST": responses.input_tokens},
        f"/v1/responses/{_ID}": {"GET": responses.retrieve, "DELETE": responses.delete},
        f"/v1/responses/{_ID}/cancel": {"POST": responses.cancel},
        f"/v1/responses/{_ID}/input_items": {"GET": responses.input_items},
        "/v1/models": {"GET": models.list},
        r"/v1/models/(?P<id>.+)": {"GET": models.retrieve},
        "/health": {"GET": status.health},
        "/ready": {"GET": status.ready},
        "/openapi.json": {"GET": OpenApi().document},
        "/": {"GET": status.welcome},
    }
    return App(gateway, options, routes)


class App:
    """Finds the handler, counts requests, turns errors into answers."""

    def __init__(self, gateway: Gateway, options: ServerOptions, routes: dict[str, dict[str, Handler]]) -> None:
        self._gateway = gateway
        self._options = options
        self._exact = {path: methods for path, methods in routes.items() if "(" not in path}
        self._patterns = [(re.compile(path), methods) for path, methods in routes.items() if "(" in path]
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await _no_websocket(receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = scope["isthmus.exchange"] = Exchange(scope["method"], scope["path"])
        answer = _Answer(send, exchange)
        self._active += 1
        try:
            await self._handle(scope, receive, answer)
        except IsthmusError as error:
            exchange.failure = error
            if exchange.status is None:
                await send_error(answer, error)
        except ClientLeft:
            exchange.left = True
        except Exception as error:
            tell(log, "error", "request.broken", id=exchange.id, trace=error)
            if exchange.status is not None:
                raise
            await send_json(answer, 500, internal_error())
        finally:
            self._active -= 1
            exchange.tell()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET" and header(scope, b"upgrade").lower() == "websocket":
            # 426 makes Codex go on over HTTP at once; after any other answer it tries again for seconds.
            error = RequestRefused("there are no WebSockets here; use HTTP", code="upgrade_required")
            await send_error(send, error, {"upgrade": "HTTP/1.1"})
            return
        check_origin(scope, self._options)
        exchange_of(scope).caller = self._options.keys.identify(scope)
        handler = self._find(scope)
        if isinstance(handler, list):
            message = f"`{scope['method']}` is not allowed on `{scope['path']}`; use {' or '.join(handler)}"
            error = RequestRefused(message, code="method_not_allowed")
            await send_error(send, error, {"allow": ", ".join(handler)})
            return
        busy = self._active > self._options.max_concurrent
        if scope["method"] == "POST" and (self._gateway.draining or busy):
            raise draining() if self._gateway.draining else _busy()
        await handler(scope, receive, send)

    def _find(self, scope: Scope) -> Handler | list[str]:
        """The handler, or the methods that the path would allow."""
        path = scope["path"].rstrip("/") or "/"
        methods = self._exact.get(path)
        if methods is None:
            for pattern, candidate in self._patterns:
                found = pattern.fullmatch(path)
                if found is not None:
                    methods, scope["path_params"] = candidate, found.groupdict()
                    break
        if methods is None:
            raise RequestRefused(f"there is nothing at `{path}`; `/openapi.json` lists what there is", code="not_found")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return methods.get(method) or sorted(methods)


class _Answer:
    """`send`, with the request's id on every answer and a memory of its status."""

    __slots__ = ("_exchange", "_request_id", "_send")

    def __init__(self, send: Send, exchange: Exchange) -> None:
        self._send = send
        self._exchange = exchange
        self._request_id = exchange.id.encode()

    def __call__(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self._exchange.status = message["status"]
            message["headers"].append((b"x-request-id", self._request_id))
        return self._send(message)


def _busy() -> IsthmusError:
    return IsthmusError("the gateway is serving as many requests as it may; try again", code="server_is_overloaded")


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _no_websocket(receive: Receive, send: Send) -> None:
    """The same 426 as `App` gives, for ASGI servers that announce an upgrade as a WebSocket."""
    await receive()
    await send({"type": "websocket.http.response.start", "status": 426, "headers": [(b"upgrade", b"h2c")]})
    await send({"type": "websocket.http.response.body", "body": b""})
