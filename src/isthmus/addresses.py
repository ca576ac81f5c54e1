"""What an address means: whether it is this very machine, which key may go there, and what may be put into one that
is written with gaps. Nobody else decides any of these.

In: a host or a URL, as somebody wrote it. Out: yes or no; whatever cannot be read is not this machine and gets no key.
`https://${AZURE_RESOURCE_NAME}.openai.azure.com/v1` has a gap: what fills it may name a resource there, and never
another host, because the key goes wherever the address leads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

_HERE: Final = frozenset({"0.0.0.0", "::", "host.docker.internal"})
"""Not the loopback, and yet this machine when a request goes there."""
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
