"""What browsers are told: which page may read an answer, and whether it may ask at all (CORS).

In: the page that `check_origin` let in. Out: headers for every answer, streams and errors too, and the answer to the
question that a browser asks before it lets a page ask. That question carries no key, so it is answered before keys are.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

from isthmus.addresses import is_loopback
from isthmus.server.http import RawHeaders, header
from isthmus.server.options import ServerOptions
from isthmus.server.origin import origin_host

_LIMITS: Final = ", ".join(
    f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")
)
_READABLE: Final = (
    "isthmus-choice, isthmus-plan, openai-processing-ms, retry-after, "
    "x-client-request-id, x-request-id, x-should-retry, " + _LIMITS
).encode()
"""Headers of ours that a page may read besides those that every page may."""
_METHODS: Final = b"GET, HEAD, POST, DELETE"
_REMEMBERED: Final = b"600"
"""Seconds for which a browser need not ask again whether it may ask."""
VARY: Final = (b"vary", b"Origin")


def cors_headers(origin: str, options: ServerOptions) -> RawHeaders:
    """What every answer says to browsers. `Vary` is there also for those who are told nothing: caches keep answers."""
    if "*" in options.allow_origins:
        return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", _READABLE)] if origin else []
    if not options.local_only and not options.allow_origins:
        return []
    if not origin or not (origin in options.allow_origins or (options.local_only and is_loopback(origin_host(origin)))):
        return [VARY]
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _READABLE),
        VARY,
    ]


def preflight_headers(scope: Scope, told: RawHeaders) -> RawHeaders | None:
    """The answer to a browser that asks whether a page may ask, given what `cors_headers` says to the page. `None`:
    this is no such question, or the page may not."""
    if scope["method"] != "OPTIONS" or not header(scope, b"access-control-request-method"):
        return None
    if not any(name == b"access-control-allow-origin" for name, _ in told):
        return None
    wanted = header(scope, b"access-control-request-headers")
    more: RawHeaders = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", _REMEMBERED)]
    if wanted:
        more.append((b"access-control-allow-headers", wanted.encode("latin-1")))
    if header(scope, b"access-control-request-private-network") == "true":
        more.append((b"access-control-allow-private-network", b"true"))  # Chrome, where a public page asks a local one
    return more
