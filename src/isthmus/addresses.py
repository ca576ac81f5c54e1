"""What an address means: whether it is this very machine, and which key may go there. Nobody else decides either.

In: a host or a URL, as somebody wrote it. Out: yes or no; whatever cannot be read is not this machine and gets no key.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

_HERE: Final = frozenset({"0.0.0.0", "::", "host.docker.internal"})
"""Not the loopback, and yet this machine when a request goes there."""


def is_loopback(host: str | None) -> bool:
    """Whether only this machine can reach what listens there; also of a page or a program, whether it is from here."""
    name = (host or "").strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761: these never lead anywhere else
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_local(url: str) -> bool:
    """Whether requests to a URL stay on this machine; also where there is no URL yet, because we choose it at run
    time."""
    host = host_of(url)
    return host is not None and (not host or host in _HERE or is_loopback(host))


def may_get_key(own: str, url: str) -> bool:
    """Whether a key that was made for the address `own` may be sent to `url`: to the same host and to no other, because
    its owner did not choose that one. Empty: to `own` itself. Where `own` is this machine, the address is the user's
    choice, and so is the key."""
    return not url or is_local(own) or (host_of(own) is not None and host_of(url) == host_of(own))


def host_of(url: str) -> str | None:
    """The host in small letters; empty where the URL names none, `None` where it is no URL at all."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return None
