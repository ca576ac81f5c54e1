"""The proxy on the way to an address: the one that is set, else the one that the environment names."""

from __future__ import annotations

import urllib.parse
import urllib.request
from typing import Final

_SPOKEN: Final = ("http", "https")


def environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for this address."""
    parts = urllib.parse.urlsplit(url)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def proxy_fault(proxy: str | None) -> str | None:
    """Why it cannot be used, in words without its address; `None` when nothing speaks against it."""
    if proxy is None:
        return None
    scheme, found, _ = proxy.partition("://")
    if found and scheme.lower() not in _SPOKEN:
        return f"its proxy is a `{scheme}` one, and only `http` and `https` proxies are spoken to"
    return None
