"""MCP servers for tests: a real one of the official SDK in its own process, and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

SERVER = str(Path(__file__).with_name("mcp_world_server.py"))


@dataclass
class Real:
    port: int
    process: asyncio.subprocess.Process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def seen(self) -> dict[str, Any]:
        where = f"http://127.0.0.1:{self.port}/seen"
        async with aiohttp.ClientSession(trust_env=False) as session, session.get(where) as answer:
            found: dict[str, Any] = await answer.json(content_type=None)
            return found

    async def calls(self) -> list[str]:
        return [str(call) for call in (await self.seen())["calls"]]

    async def comes_to(self, call: str) -> None:
        """Until it was asked for this."""
        async with asyncio.timeout(60):
            while call not in await self.calls():  # noqa: ASYNC110  # in another process
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def restart(self) -> None:
        """The same address, and nothing remembered."""
        await self.stop()
        self.process = await _start(self.port)
        assert self.process.stdout is not None
        await self.process.stdout.readline()


async def _start(port: int = 0) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, SERVER, str(port), stderr=subprocess.DEVNULL, stdout=subprocess.PIPE
    )


@asynccontextmanager
async def real_server() -> AsyncIterator[Real]:
    process = await _start()
    assert process.stdout is not None
    made = Real(int(await process.stdout.readline()), process)
    try:
        yield made
    finally:
        await made.stop()


Answer = Callable[[str, dict[str, Any], web.Request], Awaitable[web.StreamResponse | dict[str, Any]]]
"""Method and parameters → a result, or an answer of its own making."""


@asynccontextmanager
async def odd_server(answer: Answer) -> AsyncIterator[str]:
    """A server of the older kind, as far as `answer` lets it be one; its address."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        given = await answer(message["method"], message.get("params") or {}, request)
        if isinstance(given, web.StreamResponse):
            return given
        head = given.pop("headers", None)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], **given}, headers=head)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        await runner.cleanup()


def greet(method: str) -> dict[str, Any] | None:
    """What every server says when somebody comes."""
    if method == "server/discover":
        return {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        info = {"name": "odd", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    return None


def one_tool(name: str = "t") -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


@contextmanager
def running_server() -> Iterator[str]:
    """The same for tests that run no loop: its address."""
    process = subprocess.Popen([sys.executable, SERVER], stderr=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def seen_by(url: str) -> dict[str, Any]:
    """What it was sent."""
    with urllib.request.urlopen(f"{url.removesuffix('/mcp')}/seen", timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found
