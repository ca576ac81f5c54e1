"""Which host was asked for, and which web page asks: both are looked at before anything else is.

A gateway on the loopback is reachable from every page in the user's browser: those are kept out. A page names itself in
`Origin`; a page that rebinds its name to 127.0.0.1 names itself in `Host`. Programs send no `Origin`, and speak to the
loopback by its name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

from starlette.types import Scope

from isthmus.addresses import is_loopback
from isthmus.errors import RequestRefused
from isthmus.server.options import ServerOptions

_NAMED: Final = r"(?P<host>\[[^\]]*\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::\d{0,5})?"
_HOST: Final = re.compile(_NAMED)
_ORIGIN: Final = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*://{_NAMED}")


is_here: Final = lru_cache(1024)(is_loopback)
"""The same few names in every request."""


def check_origin(scope: Scope, options: ServerOptions) -> str:
    """The page that asks, `""` if none does. Refuses what is broken, and what only a foreign web page would send."""
    host, origin = _host(scope), _only(scope, b"origin") or ""
    page = None if not origin or origin == "null" else origin_host(origin)
    if origin and origin != "null" and page is None:
        raise _malformed("Origin", origin)
    if not options.local_only or "*" in options.allow_origins:
        return origin
    if origin and origin not in options.allow_origins and not is_here(page):
        raise RequestRefused(
            f"the web page `{origin}` may not call this gateway; name it in `server.allow_origins` if it should",
            code="foreign_origin",
            param="Origin",
        )
    if host and not origin and not is_here(host) and host not in _names(options.allow_origins):
        raise RequestRefused(
            f"this gateway listens on the loopback and is not called `{host}`; use 127.0.0.1 or localhost, "
            f"set `server.host`, or name `https://{host}` in `server.allow_origins`",
            code="foreign_origin",
            param="Host",
        )
    return origin


@lru_cache(1024)
def host_name(host: str) -> str | None:
    """The name or address in a `Host` header, without its port; `None` if it is none. `""` is allowed: no name."""
    return _name(_HOST.fullmatch(host))


@lru_cache(1024)
def origin_host(origin: str) -> str | None:
    """The host in an `Origin`; `None` if it is none."""
    return _name(_ORIGIN.fullmatch(origin))


def _name(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    host = found["host"].lower()
    if not host.startswith("["):
        return host
    try:
        IPv6Address(host[1:-1])
    except ValueError:
        return None
    return host[1:-1]


def _host(scope: Scope) -> str:
    given = _only(scope, b"host")
    if given is None:
        if scope["http_version"] == "1.0":
            return ""
        raise RequestRefused("a request in HTTP/1.1 names its `Host`", code="invalid_host", param="Host")
    name = host_name(given)
    if name is None:
        raise _malformed("Host", given)
    return name


def _only(scope: Scope, name: bytes) -> str | None:
    """The one header of this name; `None` if there is none."""
    found = [value for key, value in scope["headers"] if key == name]
    if len(found) > 1:
        shown = name.decode().capitalize()
        raise RequestRefused(f"there are {len(found)} `{shown}` headers; send one", code="invalid_host", param=shown)
    return str(found[0], "latin-1") if found else None


def _malformed(name: str, value: str) -> RequestRefused:
    return RequestRefused(f"header `{name}` is malformed: `{value[:100]}`", code="invalid_host", param=name)


@lru_cache(8)
def _names(origins: frozenset[str]) -> frozenset[str | None]:
    """The hosts of pages that may ask: behind a proxy, requests without an `Origin` come under these names as well."""
    return frozenset(origin_host(each) for each in origins)
