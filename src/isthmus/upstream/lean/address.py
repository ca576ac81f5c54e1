"""A URL, taken apart for a request: where to connect, what to ask for, and how it is spelled.

In: a URL as people write it, and what goes into its query. Out: an `Address`. Worth knowing: most are spelled as they
are sent; only those that are not (letters of other alphabets, spaces, dots that lead upwards, a user's name) are put
right by yarl, which is loaded for them alone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from isthmus.upstream.trouble import unreachable

_PORTS: Final = {"http": 80, "https": 443}
_CHAR: Final = r"[\w.~:@!$&'()*+,;=-]"
_PLAIN: Final = re.compile(
    rf"(?P<scheme>https?)://(?P<host>[\w.-]+|\[[0-9a-f:.]+\])(?::(?P<port>\d{{1,5}}))?"
    rf"(?P<path>(?:/(?!\.)(?:{_CHAR})*)*)(?:\?(?P<query>(?:[/?]|{_CHAR})*))?",
    re.ASCII,
)
_QUERY: Final = re.compile(r"[\w.~-]*", re.ASCII)
_Origin = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    """As it is sent; whoever signs a request signs this."""
    origin: _Origin
    """Scheme, host and port: whoever has the same ones shares connections."""
    host: str
    """As it stands in the head."""
    target: str
    authorization: str = ""
    """Made of the user's name and password in it."""


def take_apart(url: str, query: Mapping[str, str]) -> Address:
    """`query`: what is added to the URL's own."""
    plain = _PLAIN.fullmatch(url)
    if plain is None or not all(map(_QUERY.fullmatch, [*query, *query.values()])):
        return _put_right(url, query)
    scheme, host, port = plain["scheme"], plain["host"].lower(), int(plain["port"] or _PORTS[plain["scheme"]])
    if not 0 < port < 65536:
        raise unreachable("its address is not one")
    asked = "&".join([*filter(None, [plain["query"]]), *(f"{name}={value}" for name, value in query.items())])
    target = f"{plain['path'] or '/'}{'?' if asked else ''}{asked}"
    return _address(scheme, host, port, target)


def _put_right(url: str, query: Mapping[str, str]) -> Address:
    from yarl import URL

    try:
        found = URL(url)
        if query:
            found = found.extend_query(query)
        scheme, host, port, target = found.scheme, found.raw_host, found.port, found.raw_path_qs
        user, password = found.user, found.password
    except ValueError:
        raise unreachable("its address is not one") from None
    if scheme not in _PORTS or not host or not port:
        raise unreachable("its address is not one")
    shown = f"[{host}]" if ":" in host else host
    secret = base64.b64encode(f"{user or ''}:{password or ''}".encode()).decode() if user or password else ""
    return _address(scheme, shown, port, target, f"Basic {secret}" if secret else "")


def _address(scheme: str, host: str, port: int, target: str, authorization: str = "") -> Address:
    """`host`: an IPv6 address stands in brackets."""
    shown = host.rstrip(".")  # it leads there all the same, and is no part of the name in a certificate
    shown = shown if port == _PORTS[scheme] else f"{shown}:{port}"
    origin = (scheme, host.strip("[]"), port)
    return Address(f"{scheme}://{shown}{target}", origin, shown, target, authorization)
