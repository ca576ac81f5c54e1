"""Is it alive, can it serve, what is it: `/health`, `/ready`, `/`."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from isthmus import __version__
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.json import JsonObject
from isthmus.server.http import send_json


class StatusApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The process answers: that is all this says."""
        await send_json(send, 200, {"status": "ok", "version": __version__})

    async def ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whether new requests are welcome, and what stands in their way."""
        problems: JsonObject = {}
        if self._gateway.draining:
            problems["gateway"] = "shutting down"
        try:
            stats = await self._gateway.store.stats()
            stored: int | None = stats.responses
        except Exception as error:  # whatever is wrong with it, the store is not ready
            stored = None
            problems["store"] = str(error)
        providers: JsonObject = {}
        for name, served in self._gateway.directory.served.items():
            providers[name] = await served.backend.ready() or "ok"
        body: JsonObject = {
            "status": "ready" if not problems else "not ready",
            "providers": providers,
            "running": len(self._gateway.runs),
            "stored": stored,
        }
        if problems:
            body["problems"] = problems
        await send_json(send, 503 if problems else 200, body)

    async def welcome(self, scope: Scope, receive: Receive, send: Send) -> None:
        directory = self._gateway.directory
        body: JsonObject = {
            "name": "isthmus",
            "version": __version__,
            "default_model": directory.default,
            "providers": list(directory.served),
            "endpoints": ["/v1/responses", "/v1/chat/completions", "/v1/models", "/health", "/ready", "/openapi.json"],
        }
        await send_json(send, 200, body)
