"""An MCP server of the official SDK for tests: `python mcp_server.py stdio|http`; over HTTP it prints its port."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("test")


@server.tool()
def search(query: str, limit: int = 3) -> str:
    """Search for something."""
    return f"{limit} hits for {query}"


@server.tool()
def fail() -> str:
    """Always fail."""
    raise ToolError("the index is gone")


def extra() -> str:
    """Was not there before."""
    return "new"


@server.tool()
async def grow(ctx: Context) -> str:
    """Add a tool."""
    server.add_tool(extra, name="extra")
    await ctx.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:  # whoever connects from now on is served
            print(listener.getsockname()[1], flush=True)
            uvicorn.run(server.streamable_http_app(), fd=listener.fileno(), log_level="error")
