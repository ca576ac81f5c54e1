"""What an address means: whether it is this very machine, which key may go there, whom we call of our own accord, and
what may be put into one that is written with gaps. Nobody else decides any of these.

In: a host or a URL, as somebody wrote it. Out: yes or no; whatever cannot be read is not this machine and gets no key.
`https://${AZURE_RESOURCE_NAME}.openai.azure.com/v1` has a gap: what fills it may name a resource there, and never
another host, because the key goes wherever the address leads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

_HERE: Final = frozenset({"0.0.0.0", "::", "host.docker.internal"})
"""Not the loopback, and yet this machine when a request goes there."""
_PORTS: Final = {"https": 443, "http": 80}
_NAT64: Final = ip_network("64:ff9b::/96")
_GAP: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_FITTING: Final = {
    "label": (re.compile(_LABEL), "letters, digits and hyphens: it becomes a part of the host's name"),
    "host": (re.compile(rf"{_LABEL}(?:\.{_LABEL})*"), "the name of a host, without `https://`, port or path"),
    "segment": (re.compile(r"(?!\.+$)[A-Za-z0-9._~:-]+"), "a name without slashes: it becomes a part of the path"),
    "address": (re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/-]*)?"), "a whole address, `https://…`"),
}
"""What a value may look like in each place of an address, and how that is told."""


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


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the internet at large: no network of ours, no machine beside us, not us."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(each.is_global and not each.is_multicast and not each.is_reserved for each in _meant(found))


def _meant(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Where packets to an address end, by every way that there may be: IPv6 has several for IPv4."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour
        yield from address.teredo or ()


def fault_of_call(url: str, allowed: Iterable[str], private: Iterable[str]) -> str | None:
    """What keeps us from calling a URL of our own accord, as a webhook's receiver, in words; `None`: nothing does.

    `allowed` and `private` are hosts that the operator named. What a name leads to is looked at when it is called.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "is no address"
    if parts.scheme not in _PORTS or not host or any(character.isspace() for character in url):
        return "must be a whole address, as `https://hooks.example.org/isthmus`"
    if parts.username or parts.password:
        return "has a user or a password in it, which are not sent"
    place = (host, port or _PORTS[parts.scheme])
    if is_named_private(url, private):
        if parts.scheme == "http" and not is_loopback(host):
            return "must begin with `https`: anybody on the way could read and repeat what is sent"
        return None
    if parts.scheme == "http":
        return "must begin with `https`; over http only this machine is called, where `private_hosts` names it"
    if not any(_names(entry, *place) for entry in allowed):
        shown = host if place[1] == _PORTS["https"] else f"{host}:{place[1]}"
        return f"leads to `{shown}`, which `allowed_hosts` does not name"
    if is_loopback(host) or (_is_address(host) and not is_public(host)):
        return f"leads to `{host}`, which is private, and `private_hosts` does not name it"
    return None


def fault_of_visit(url: str) -> str | None:
    """What keeps us from fetching a URL that neither we nor the operator named (a page, an image that a provider only
    points to), in words; `None`: nothing that its text shows. What its name leads to is looked at when it is called."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "is no address"
    if any(character.isspace() or not character.isprintable() for character in url):
        return "is no address"
    if parts.scheme != "https" or not host:
        return "does not begin with `https://`"
    if parts.username or parts.password:
        return "has a user or a password in it, which are not sent"
    if port not in (None, _PORTS["https"]):
        return f"names the port {port}; only the usual one of https is visited"
    if is_loopback(host) or (_is_address(host) and not is_public(host)):
        return "leads to this machine, or into a private network"
    return None


def is_named_private(url: str, private: Iterable[str]) -> bool:
    """Whether a URL's very host is among those that may lead anywhere."""
    parts = urlsplit(url)
    place = ((parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0))
    return any(_names(entry, *place, scheme=parts.scheme) for entry in private if not entry.startswith("*"))


def _names(entry: str, host: str, port: int, scheme: str = "https") -> bool:
    """Whether an entry, `host`, `host:port` or `*.domain`, means this place."""
    bare = entry.strip().lower()
    if bare.count(":") > 1 and not bare.startswith("["):
        bare = f"[{bare}]"
    try:
        parts = urlsplit(f"//{bare}")
        name, own = (parts.hostname or "").rstrip("."), parts.port or _PORTS[scheme]
    except ValueError:
        return False
    return own == port and (host == name if not name.startswith("*.") else host.endswith(name[1:]) and host != name[2:])


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def behind(base_url: str, path: str) -> str:
    """The address of a path behind a base URL; a path from the root leaves the version (`/v1`) out."""
    base = base_url.rstrip("/")
    return f"{base.removesuffix('/v1')}{path}" if path.startswith("/") else f"{base}/{path}"


def host_of(url: str) -> str | None:
    """The host in small letters; empty where the URL names none, `None` where it is no URL at all."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return None


def gaps_of(address: str) -> tuple[str, ...]:
    """The variables that an address is written with, each once."""
    return tuple(dict.fromkeys(_GAP.findall(address)))


def misfit(address: str, name: str, value: str) -> str | None:
    """What a value would have to be in the places of `name`; `None`: it fits."""
    for place in _places_of(address, name):
        pattern, told = _FITTING[place]
        if not pattern.fullmatch(value):
            return told
    return None


def fill_gaps(address: str, values: Mapping[str, str]) -> str:
    """The address with the values in it; a gap without a fitting value stays open, and no URL has one."""
    return fill_in(address, {name: value for name, value in values.items() if misfit(address, name, value) is None})


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """The same for a text that is no address: whatever stands in it leads nowhere."""
    return _GAP.sub(lambda gap: values.get(gap[1], gap[0]), text)


def _places_of(address: str, name: str) -> Iterator[str]:
    gap = f"${{{name}}}"
    if address.startswith(gap):
        yield "address"
    host, _, path = address.partition("://")[2].partition("/")
    if gap in host:
        yield "host" if host == gap else "label"
    if gap in path or ("://" not in address and gap in address.removeprefix(gap)):
        yield "segment"
