"""What counts when a configuration is read again, and what only a new process can take up.

In: the configuration that is in force, and the one that was read. Out: the one to go on with, and the settings of the
new one that have to wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from isthmus.config.schema import Config

ADDRESS: Final = frozenset({"server.host", "server.port", "server.unix_socket", "server.workers"})
"""Where it listens, and how many do: all of it has to be started again."""
SECTIONS: Final = ("background", "checks", "log", "otel", "trace", "webhooks")
"""What is made of these once outlives every configuration."""
FIELDS: Final = frozenset(
    {
        *ADDRESS,
        *("server.tls_cert", "server.tls_key", "server.trusted_proxies", "server.stuck_worker"),
        *("server.stale_keys",),
        *("websocket.max_state", "websocket.max_states", "websocket.ping", "websocket.pong"),
        *("store.url", "store.keep_days", "store.keep_conversation_days", "store.max_bytes", "store.durability"),
        *("limits.redis", "limits.redis_down", "limits.redis_timeout", "limits.hold"),
        *("usage.keep_days", "usage.max_waiting"),
        *("limits.slow_loop", "limits.stuck_loop", "limits.max_told"),
        *("metrics.enabled", "metrics.max_models"),
    }
)
"""Likewise, of sections whose other settings count at once."""


@dataclass(frozen=True, slots=True)
class Reload:
    config: Config
    """With the new value of whatever counts at once."""
    waiting: tuple[str, ...]
    """Settings whose new value needs a new process."""

    @property
    def moves(self) -> bool:
        """Whether not even new workers would do."""
        return not ADDRESS.isdisjoint(self.waiting)


def plan_reload(before: Config, after: Config) -> Reload:
    config = after
    waiting = tuple(_waiting(before, after))
    for name in waiting:
        section, _, key = name.partition(".")
        old = getattr(before, section)
        if section not in SECTIONS:
            old = msgspec.structs.replace(getattr(config, section), **{key: getattr(old, key)})
        config = msgspec.structs.replace(config, **{section: old})
    return Reload(config, waiting)


def _waiting(before: Config, after: Config) -> Iterator[str]:
    for section in Config.__struct_fields__:
        old, new = getattr(before, section), getattr(after, section)
        if not isinstance(old, msgspec.Struct):
            continue
        for key in old.__struct_fields__:
            name = f"{section}.{key}"
            if (section in SECTIONS or name in FIELDS) and getattr(old, key) != getattr(new, key):
                yield name
