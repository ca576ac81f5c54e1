"""An MCP server of the official SDK, in a process of its own: `python mcp_world_server.py [PORT]`; it prints its port.

What it was sent can be read from `/seen`, so that a test knows what went over the wire and what never did.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("world")
READ = ToolAnnotations(read_only_hint=True)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000"
    "000049454e44ae426082"
)
calls: list[str] = []
seen: list[dict[str, Any]] = []


@server.tool(annotations=READ, structured_output=False)
def weather(city: str) -> str:
    """The weather in a city."""
    calls.append(f"weather {city}")
    return f"It rains in {city}."


@server.tool(structured_output=False)
def delete(name: str) -> str:
    """Delete something for good."""
    calls.append(f"delete {name}")
    return f"{name} is gone."


@server.tool(annotations=READ, structured_output=False)
def fail() -> str:
    """Always fail."""
    raise ToolError("the archive burnt down")


@server.tool(annotations=READ, structured_output=False)
def whoami(ctx: Context) -> str:
    """Repeat what this server was shown."""
    return json.dumps(dict(ctx.headers or {}))


@server.tool(annotations=READ, structured_output=False)
def picture() -> list[Any]:
    """A picture."""
    return ["Here it is:", Image(data=PIXEL, format="png")]


@server.tool(annotations=READ, structured_output=False)
async def slowly(ctx: Context, steps: int, pause: float) -> str:
    """Work, and tell how far it is."""
    for step in range(steps):
        await asyncio.sleep(pause)
        await ctx.report_progress(step + 1, steps)
    return "done at last"


@server.tool(annotations=READ, structured_output=False)
async def hang() -> str:
    """Never answer."""
    calls.append("hang")
    await asyncio.Event().wait()
    return ""


@server.tool(annotations=READ, structured_output=False)
def huge(size: int) -> str:
    """Say very much."""
    return "x" * size


@server.tool(structured_output=False)
def die() -> str:
    """End the process at once."""
    os._exit(3)


def extra() -> str:
    """Was not there before."""
    return "new"


@server.tool(structured_output=False)
async def change(ctx: Context) -> str:
    """Take `weather` away, and add `extra`."""
    server.remove_tool("weather")
    server.add_tool(extra, name="extra", structured_output=False)
    await ctx.notify_tools_changed()
    return "changed"


class Watched:
    """The app, and a look at what it was sent."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/seen":
            body = json.dumps({"calls": calls, "requests": seen}).encode()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})
            return
        if scope["type"] == "http":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            seen.append({"method": scope["method"], "path": scope["path"], "headers": headers})
        await self._app(scope, receive, send)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with socket.create_server(("127.0.0.1", port)) as listener:  # whoever connects from now on is served
        print(listener.getsockname()[1], flush=True)
        uvicorn.run(Watched(server.streamable_http_app()), fd=listener.fileno(), log_level="critical")
