"""Forwarders that carry bytes and know nothing: the least that a gateway in Python could cost.

`python -m bench.gateways.floors aiohttp PORT UPSTREAM` is uvicorn with aiohttp's client; `lean` is one protocol on
httptools for both sides, with nothing in it that is not needed here. Neither is fit for anything else.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp
import httptools
import uvicorn
import uvloop


def with_aiohttp(port: int, upstream: int) -> None:
    session: aiohttp.ClientSession | None = None

    async def app(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[..., Any]) -> None:
        nonlocal session
        session = session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        url = f"http://127.0.0.1:{upstream}{scope['path']}"
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as answer:
            names = ("content-type", "content-length")
            headers = [(name.encode(), answer.headers[name].encode()) for name in names if name in answer.headers]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            async for piece in answer.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    uvicorn.run(app, host="127.0.0.1", port=port, http="httptools", loop="uvloop", access_log=False, lifespan="off")


class _Above(asyncio.Protocol):
    """A connection to the upstream, lent to one request at a time; what comes is written on as it came."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def serve(self, client: _Below) -> None:
        self._client = client
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self._client.transport.write(data)
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        _IDLE.append(self)
        self._client.next()


_IDLE: deque[_Above] = deque()


class _Below(asyncio.Protocol):
    """A client's connection: a request is read to its end, then sent on as it came."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._held: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.next()

    def next(self) -> None:
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._held.append(data)
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        request = b"".join(self._held)
        self._held.clear()
        if _IDLE:
            self._ask(_IDLE.popleft(), request)
        else:
            asyncio.get_running_loop().create_task(self._connect(request))

    async def _connect(self, request: bytes) -> None:
        _, above = await asyncio.get_running_loop().create_connection(_Above, "127.0.0.1", self._upstream)
        self._ask(above, request)

    def _ask(self, above: _Above, request: bytes) -> None:
        above.serve(self)
        above.transport.write(request)


def lean(port: int, upstream: int) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(
            lambda: _Below(upstream), "127.0.0.1", port, backlog=4096
        )
        await server.serve_forever()

    uvloop.run(main())


if __name__ == "__main__":
    {"aiohttp": with_aiohttp, "lean": lean}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
