"""Is a page within the domains that somebody named? Held against every hit and every page, whatever a vendor did.

In: an address, and entries as `example.org` or `example.org/docs`. An entry means all below it. What cannot be read is
within no domain, and never allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from isthmus.ports.search import Scope


def is_within(url: str, scope: Scope) -> bool:
    """Whether it is one of the allowed, if any are named, and none of the blocked."""
    found = _read(url)
    if found is None:
        return False
    if any(_means(entry, found) for entry in scope.blocked):
        return False
    return not scope.allowed or any(_means(entry, found) for entry in scope.allowed)


def bare_domains(entries: Iterable[str]) -> tuple[str, ...]:
    """The hosts alone, as search engines want them; each once."""
    return tuple(dict.fromkeys(_host(entry) for entry in entries if _host(entry)))


def _means(entry: str, found: tuple[str, str]) -> bool:
    host, path = found
    own = _host(entry)
    below = _strip(entry).partition("/")[2].rstrip("/")
    if not own or (host != own and not host.endswith(f".{own}")):
        return False
    return not below or path == f"/{below}" or path.startswith(f"/{below}/")


def _host(entry: str) -> str:
    return _plain(_strip(entry).partition("/")[0].partition(":")[0])


def _strip(entry: str) -> str:
    return entry.strip().removeprefix("https://").removeprefix("http://").removeprefix("*.")


def _read(url: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    return (_plain(host), parts.path) if host and parts.scheme in ("http", "https") else None


def _plain(host: str) -> str:
    """As it travels: a name in another script has two spellings."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return name
