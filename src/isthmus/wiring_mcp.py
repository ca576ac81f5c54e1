"""`[mcp]` → MCP servers that a gateway calls for its clients."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.bridge.tools.mcp_rules import McpRule
from isthmus.config.check_mcp import check_mcp
from isthmus.config.schema import Config, McpConfig
from isthmus.config.secrets import configured_secrets
from isthmus.upstream.mcp.host import McpHost, Server
from isthmus.upstream.mcp.sessions import Bounds, Sessions
from isthmus.values.problems import as_error


def open_mcp_host(config: Config) -> McpHost:
    """Nothing is connected before somebody asks for it."""
    errors = [problem for problem in check_mcp(config.mcp) if problem.severity == "error"]
    if errors:  # also where nobody has checked the configuration before: nobody is called by mistake
        raise as_error(errors)
    servers = {name: _read_server(name, settings) for name, settings in config.mcp.items()}
    return McpHost(servers, Sessions(_bounds(servers)), configured_secrets(config))


def _bounds(servers: Mapping[str, Server]) -> dict[str, Bounds]:
    return {name: server.bounds for name, server in servers.items()}


def _read_server(name: str, settings: McpConfig) -> Server:
    rule = McpRule(
        name=name,
        url=settings.url,
        headers=frozenset(header.lower() for header in settings.headers),
        allowed_hosts=tuple(settings.allowed_hosts),
        private_hosts=tuple(settings.private_hosts),
        allowed_tools=tuple(settings.allowed_tools),
        read_only=settings.read_only,
        approval=settings.require_approval,
    )
    bounds = Bounds(
        timeout=settings.timeout,
        idle=settings.idle,
        max_sessions=settings.max_sessions,
        max_tools=settings.max_tools,
        max_reply=settings.max_reply,
    )
    return Server(rule, settings.headers, settings.timeout, bounds)
