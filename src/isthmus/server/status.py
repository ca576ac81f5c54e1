"""Is it alive, can it serve, what is it: `/health`, `/ready`, `/`."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope, Send

from isthmus import __version__
from isthmus.gateway.gateway import Gateway
from isthmus.observe.outlet import lost_lines
from isthmus.observe.vitals import Vitals
from isthmus.protocol.json import JsonObject
from isthmus.server.http import send_json
from isthmus.server.readiness import OK, Readiness


class StatusApi:
    def __init__(self, gateway: Gateway, readiness: Readiness, vitals: Vitals | None = None) -> None:
        self._gateway = gateway
        self._readiness = readiness
        self._vitals = vitals

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The process answers: that is all this says."""
        await send_json(send, 200, {"status": "ok", "version": __version__})

    async def ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whether new requests are welcome, and what stands in their way, part by part."""
        if self._gateway.draining:  # known at once: nobody has to be asked, and the parts may be closing
            body: JsonObject = {"status": "not ready", "gateway": "shutting down", "running": len(self._gateway.runs)}
            await send_json(send, 503, body)
            return
        found = await self._readiness.ask()
        deliveries = self._gateway.deliveries
        words = {} if deliveries is None else {name: word or OK for name, word in deliveries.words().items()}
        troubled = found.status == "ready" and any(word != OK for word in words.values())
        body = {
            "status": "degraded" if troubled else found.status,
            "gateway": OK,
            "store": found.store,
            "providers": dict(found.providers),
            **({"mcp": dict(found.mcp)} if found.mcp else {}),
            **({"webhooks": words} if words else {}),
            "running": len(self._gateway.runs),
            "tasks": len(asyncio.all_tasks()),
            **self._measured(),
            "checked_seconds_ago": round(asyncio.get_running_loop().time() - found.at, 1),
        }
        await send_json(send, 503 if found.status == "not ready" else 200, body)

    def _measured(self) -> JsonObject:
        vitals = self._vitals
        if vitals is None:
            return {}
        lag: JsonObject = {"last": round(vitals.lag * 1000, 1), "worst_of_a_minute": round(vitals.worst_lag * 1000, 1)}
        return {"loop_lag_ms": lag, "memory_bytes": vitals.memory or None, "log_lines_lost": lost_lines()}

    async def welcome(self, scope: Scope, receive: Receive, send: Send) -> None:
        directory = self._gateway.directory
        body: JsonObject = {
            "name": "isthmus",
            "version": __version__,
            "default_model": directory.default,
            "providers": list(directory.served),
            "endpoints": [
                "/v1/responses",
                "/v1/chat/completions",
                "/v1/embeddings",
                "/v1/models",
                "/health",
                "/ready",
                "/metrics",
                "/openapi.json",
            ],
        }
        await send_json(send, 200, body)
