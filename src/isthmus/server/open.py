"""Whether a gateway may be served as it is configured: who could reach it, and would need no key."""

from __future__ import annotations

from isthmus.addresses import is_loopback
from isthmus.config.schema import Server
from isthmus.errors import ConfigError


def check_open(server: Server, *, kept: bool) -> None:
    """Whoever reaches a gateway without keys spends the operator's money: that must be wanted. `kept`: the store has
    keys."""
    if is_local(server) or server.api_keys or server.admin_key or server.open or kept:
        return
    raise ConfigError(
        f"`{server.host}` can be reached by other machines, and no key is asked for: everybody there could spend your "
        "provider's money. Make a key with `isthmus keys create NAME`, or set `server.api_keys = "
        '["${ISTHMUS_KEY}"]`, or `server.open = true` if that is meant',
        param="server.api_keys",
    )


def is_local(server: Server) -> bool:
    """Whether only this machine can ask: over the loopback, or over a file that has its own permissions."""
    return bool(server.unix_socket) or is_loopback(server.host)
