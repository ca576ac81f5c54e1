"""The proxy on the way to an address: the one that is set, else the one that the environment names."""

from __future__ import annotations

import os
import sys
from typing import Final
from urllib.parse import urlsplit

_SPOKEN: Final = ("http", "https")


def environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for this address."""
    if not _may_name_one():
        return None
    from urllib.request import getproxies, proxy_bypass  # with all of `http` and `email`

    parts = urlsplit(url)
    if parts.hostname is None or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _may_name_one() -> bool:
    """macOS and Windows have settings for it beside the environment."""
    return sys.platform in ("darwin", "win32") or any(name.lower().endswith("_proxy") for name in os.environ)


def proxy_fault(proxy: str | None) -> str | None:
    """Why it cannot be used, in words without its address; `None` when nothing speaks against it."""
    if proxy is None:
        return None
    scheme, found, _ = proxy.partition("://")
    if found and scheme.lower() not in _SPOKEN:
        return f"its proxy is a `{scheme}` one, and only `http` and `https` proxies are spoken to"
    return None
