"""Do the MCP servers of a configuration make sense? Whoever is called for a client must have been named.

In: `[mcp]`. Out: `Problem`s. What a host's name leads to is nobody's promise: that is looked at with each connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from isthmus.addresses import is_local
from isthmus.config.check import check_header, check_url
from isthmus.config.schema_mcp import McpConfig
from isthmus.values.problems import KeyPath, Problem


def check_mcp(servers: Mapping[str, McpConfig]) -> Iterator[Problem]:
    if servers and find_spec("mcp") is None:
        yield Problem(("mcp",), "needs the official SDK, which is not installed", "install `isthmus[mcp]`")
    for name, server in servers.items():
        yield from _check_server(("mcp", name), name, server)


def _check_server(at: KeyPath, name: str, server: McpConfig) -> Iterator[Problem]:
    hosts = bool(server.allowed_hosts or server.private_hosts)
    if not name.strip() or not all(each.isalnum() or each in "_-" for each in name):
        yield Problem(at, "is no usable label for an MCP server", "use letters, digits, `_` and `-`")
    if not server.url and not hosts:
        yield Problem(
            (*at, "url"), "is missing", "say where the server listens, or name `allowed_hosts` for clients' own"
        )
    if server.url and hosts:
        told = "allowed_hosts" if server.allowed_hosts else "private_hosts"
        yield Problem((*at, told), "excludes `url`", "put the hosts into a section of their own")
    elif hosts and server.headers:
        yield Problem(
            (*at, "headers"), "would go to whatever server a client names", "give `headers` only to a `url` of your own"
        )
    for told, entries in (("allowed_hosts", server.allowed_hosts), ("private_hosts", server.private_hosts)):
        for index, entry in enumerate(entries):
            if "/" in entry or any(each.isspace() for each in entry):
                fix = "write the host alone, as `mcp.example.org` or `mcp.example.org:8443`"
                yield Problem((*at, f"{told}[{index}]"), f"is `{entry}`, which is no host", fix)
    for header, value in server.headers.items():
        yield from check_header((*at, "headers", header), value)
    if server.url:
        problems = list(check_url((*at, "url"), server.url, ("https", "http")))
        yield from problems
        if not problems and server.headers and server.url.startswith("http:") and not is_local(server.url):
            yield Problem(
                (*at, "url"), "sends its headers over plain HTTP", "use https where the server has it", "warning"
            )
