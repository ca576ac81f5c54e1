"""What a configuration may say of MCP servers that the gateway calls for its clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from isthmus.config.section import Bytes, Count, Section, Text, Timeout


class McpConfig(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An MCP server of your own, under the label that clients use for it; or hosts on which clients may name servers of
    their own. Nobody else's server is ever called. Needs `isthmus[mcp]`."""

    url: str = ""
    """Where the server listens (Streamable HTTP). A client uses it by its label alone: `{"type": "mcp", "server_label":
    NAME}`, without `server_url`."""
    headers: Mapping[str, str] = {}
    """Headers that it is shown, such as its token; write secrets as `${VARIABLE}`. No client sees or replaces them."""
    allowed_hosts: list[Text] = []
    """In place of `url`: hosts of servers that clients name (`server_url`), as `mcp.example.org`,
    `mcp.example.org:8443` (443 if no port is named) or `*.example.org`, always with https. None of them may lead to
    this machine or into a private network."""
    private_hosts: list[Text] = []
    """Likewise, wherever they lead, as `mcp.internal` or `127.0.0.1:9000` (with http only on this machine): name only
    what every client may use."""
    allowed_tools: list[Text] = []
    """Tools that may be called, by name or glob (`get_*`); none: all. A client can narrow this, not widen it."""
    read_only: bool = False
    """Whether only those may be called that the server itself calls read-only (`readOnlyHint`)."""
    require_approval: Literal["always", "writes", "never"] = "never"
    """Which calls the user must approve whatever the client asks for: all, those of tools that are not read-only, or
    none besides the client's own (which are all, unless its `require_approval` says otherwise)."""
    timeout: Timeout = 60.0
    """How long a server may be silent: until it has listed its tools, and in a call, where progress that it tells of
    counts. Then the item has failed, and the model is told. `tools.timeout` says how long a call may take at all."""
    idle: Timeout = 300.0
    """After how long without use a connection is closed, and after how long a list of tools is asked for again."""
    max_sessions: Count = 100
    """Connections open at the same time: one for each owner and set of credentials. For one more, one is closed that is
    not in use; if there is none, the item has failed."""
    max_tools: Count = 200
    """Most tools of one server; the rest is left out."""
    max_reply: Bytes = 4_000_000
    """Largest answer of a server, and largest list of tools; a longer one is a failed item."""
