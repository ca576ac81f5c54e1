"""The demo model on a real socket: Chat Completions, embeddings and images over HTTP, on a loopback port of its own.

    async with DemoServer() as demo:
        client = AsyncOpenAI(base_url=demo.base_url, api_key="any")

It asks for no key. Worth knowing: every gateway has one, and few are asked anything. So the port is there at once; the
model, and the web server in front of it, are loaded when the first client calls, which waits in the port's queue.
"""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.ports import Workers

if TYPE_CHECKING:
    from aiohttp import web

_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 128


class DemoServer:
    """Runs in the loop that opens it; with `workers`, what takes long runs there."""

    def __init__(self, port: int = 0, *, workers: Workers | None = None, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        self._port = port
        self._workers = workers
        self._bounds = bounds
        self._listener: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """The port it listens on; known once it runs."""
        return self._port

    @property
    def base_url(self) -> str:
        """What a client of Chat Completions takes as its base URL."""
        return f"http://{_HOST}:{self._port}/v1"

    async def start(self) -> None:
        self._listener = listener = socket.create_server((_HOST, self._port), backlog=_BACKLOG)
        listener.setblocking(False)
        self._port = listener.getsockname()[1]
        try:
            asyncio.get_running_loop().add_reader(listener.fileno(), self._called, listener)
        except NotImplementedError:  # Windows
            await self._open(listener)

    async def stop(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._runner is not None:
            await self._runner.cleanup()
        else:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        listener.close()
        self._opening = self._runner = None

    def _called(self, listener: socket.socket) -> None:
        """Somebody is there; whoever serves takes the connection itself."""
        asyncio.get_running_loop().remove_reader(listener.fileno())
        self._opening = asyncio.create_task(self._open(listener), name="open the demo model")

    async def _open(self, listener: socket.socket) -> None:
        from aiohttp import web

        from isthmus.demo.compose import Composer
        from isthmus.demo.http import make_runner

        self._runner = make_runner(Composer(self._workers, self._bounds))
        await self._runner.setup()
        await web.SockSite(self._runner, listener, backlog=_BACKLOG).start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
