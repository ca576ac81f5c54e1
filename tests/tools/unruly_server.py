"""An MCP server whose tools misbehave: `python unruly_server.py stdio|http|silent`; over HTTP it prints its port."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("unruly")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@server.tool()
def fine() -> str:
    """Do as told."""
    return "fine"


@server.tool()
def leave() -> str:
    """End the process, politely."""
    sys.exit(3)


@server.tool()
def die() -> str:
    """End the process at once."""
    os._exit(3)


@server.tool()
def mumble() -> str:
    """Raise what cannot be shown."""
    raise Unspeakable


@server.tool()
def half() -> str:
    """Return half a character."""
    return "\ud800"


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return ""


@server.tool(name="a.b")
def dotted() -> str:
    """One of two with nearly the same name."""
    return "dotted"


@server.tool(name="a_b")
def scored() -> str:
    """The other one."""
    return "scored"


if __name__ == "__main__":
    if sys.argv[1] == "silent":
        time.sleep(3_600)  # neither a word nor an end, whatever comes in
    elif sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            print(listener.getsockname()[1], flush=True)
            uvicorn.run(server.streamable_http_app(), fd=listener.fileno(), log_level="critical")
