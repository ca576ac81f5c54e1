"""Names that lead only where somebody may be called.

In: a host. Out: its IP addresses, as far as `allows` lets them through. Worth knowing: what is connected to is what was
looked at, so a name that means something else a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence

Allows = Callable[[str], bool]
"""Whether an IP address may be connected to."""
Lookup = Callable[[str, int], Awaitable[list[str]]]
"""The IP addresses of a host."""


class Forbidden(OSError):
    """A name that leads where nobody may be called; its words hold nothing else."""


class Guard:
    def __init__(self, allows: Allows | None = None, lookup: Lookup | None = None) -> None:
        """`allows`: `None` for any; `lookup`: `None` for the system's."""
        self._allows = allows
        self._lookup = lookup or _ask_the_system

    async def find(self, host: str, port: int) -> list[str]:
        """`Forbidden` where none of them may be called; of a host that is an address already, that one."""
        if is_address(host):
            self.admit(host)
            return [host]
        found = await self._lookup(host, port)
        if self._allows is None:
            return found
        allowed = [address for address in found if self._allows(address)]
        if not allowed:
            raise Forbidden(errno.EACCES, f"`{host}` leads to {_count(found)}, none of which may be called")
        return allowed

    def admit(self, address: str) -> None:
        """Raises `Forbidden` for an address that stands in a URL in place of a name."""
        if self._allows is not None and not self._allows(address):
            raise Forbidden(errno.EACCES, f"`{address}` may not be called")


def is_address(host: str) -> bool:
    return family_of(host) is not None


def family_of(address: str) -> socket.AddressFamily | None:
    """`None`: it is a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, address.partition("%")[0])
        except (OSError, ValueError):  # no text, or a zero in it
            continue
        return family
    return None


async def _ask_the_system(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


def _count(found: Sequence[str]) -> str:
    return "one address" if len(found) == 1 else f"{len(found)} addresses"
