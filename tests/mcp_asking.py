"""What the tests of MCP servers share: a host with one entry, and what is asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from isthmus.bridge.tools.mcp_rules import McpRule
from isthmus.bridge.types.managed import Listing, Managed, ManagedCall, Ran
from isthmus.ports import Behalf
from isthmus.upstream.mcp.host import McpHost, Server
from isthmus.upstream.mcp.sessions import Bounds, Sessions

LABEL = {"type": "mcp", "server_label": "world"}
SECRET = "token-4e1f90a7c2b85d36"


@asynccontextmanager
async def host_of(
    url: str = "", *, headers: dict[str, str] | None = None, patience: float = 20.0, **more: Any
) -> AsyncIterator[McpHost]:
    """The operator's server `world` at `url`, or whatever rule is given."""
    bounds = {name: more.pop(name) for name in ("idle", "max_sessions", "max_tools", "max_reply") if name in more}
    rule = McpRule("world", url, frozenset(name.lower() for name in headers or {}), **more)
    server = Server(rule, headers or {}, patience, Bounds(patience, **bounds))
    made = McpHost({"world": server}, Sessions({"world": server.bounds}))
    try:
        yield made
    finally:
        await made.aclose()


async def listed(host: McpHost, tool: dict[str, Any], owner: str = "ann", **more: Any) -> Listing:
    (listing,) = (await host.offer(Managed(), [tool], more.pop("items", []), owner)).mcp.values()
    return listing


async def called(
    host: McpHost, tool_name: str, tool: dict[str, Any] = LABEL, owner: str = "ann", **arguments: Any
) -> Ran:
    call = ManagedCall("mcp_1", "mcp", tool_name, arguments, tool)
    return await host.runner(Behalf(owner)).run(call, lambda kind, fields: None)
