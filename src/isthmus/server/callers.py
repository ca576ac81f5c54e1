"""Who is calling: found out once for each request, before anything else is done.

Keys are kept as digests and compared in constant time, every one of them each time. Without keys everybody is `local`;
whoever shows one of `server.api_keys` is `local` as well, so that switching keys on loses nothing.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from starlette.types import Scope

from isthmus.bridge.types.plan import recognise_client
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.server.exchange import exchange_of
from isthmus.server.http import header

ADMIN: Final = frozenset({"admin"})
METRICS: Final = "/metrics"
PAGE: Final = "/ui"
_OPEN: Final = ("/health", "/api/hello")
"""Say nothing but that the process answers; whoever looks after it, or for it, has no key."""


class Keys:
    def __init__(self, keys: Sequence[str] = (), admin: str = "", metrics: str = "") -> None:
        """`metrics` opens `/metrics` and nothing else; where there is such a key, or an operator's, no other does."""
        operators = _callers([admin] if admin else [], ADMIN)
        self._known = _callers(keys) + operators
        self._watching = _callers([metrics] if metrics else []) + operators or self._known

    @property
    def needed(self) -> bool:
        return bool(self._known)

    def identify(self, scope: Scope) -> Caller:
        """The caller of this request; refused where a key is needed and none that we know is shown."""
        client = recognise_client(originator=header(scope, b"originator"), user_agent=header(scope, b"user-agent"))
        known = self._watching if scope["path"] == METRICS else self._known
        caller = self._find(scope, known) if known and not _is_open(scope) else LOCAL
        return caller if client is caller.client else replace(caller, client=client)

    def find(self, key: str) -> Caller | None:
        """Whose key this is."""
        return _holder(key, self._known)

    def named(self, id: str) -> Caller | None:
        """Whose key has this id."""
        return next((caller for _, caller in self._known if caller.key == id), None)

    def _find(self, scope: Scope, known: Sequence[tuple[bytes, Caller]]) -> Caller:
        kind, _, key = header(scope, b"authorization").partition(" ")
        given = key.strip() if kind.lower() == "bearer" else header(scope, b"x-api-key")
        if not given:
            words = "no API key; send `Authorization: Bearer KEY` or `x-api-key: KEY`"
            raise RequestRefused(words, code="missing_api_key")
        found = _holder(given, known)
        if found is None:
            words = "this API key is not known here; send one of those in `server.api_keys`"
            if known is not self._known:
                words = "this API key does not open `/metrics`; send the one in `metrics.key`, or `server.admin_key`"
            raise RequestRefused(words, code="invalid_api_key")
        return found


def _holder(key: str, known: Sequence[tuple[bytes, Caller]]) -> Caller | None:
    """All of them are looked at, however early it is found."""
    digest = _digest(key)
    found = [caller for each, caller in known if hmac.compare_digest(each, digest)]
    return found[-1] if found else None


def is_page(scope: Scope) -> bool:
    """Whether it is asked for by a browser that shows it: such a page asks for keys itself."""
    path: str = scope["path"]
    return path == PAGE or path.startswith(f"{PAGE}/") or (path == "/" and "text/html" in header(scope, b"accept"))


def _is_open(scope: Scope) -> bool:
    return scope["path"] in _OPEN or is_page(scope)


def _callers(keys: Sequence[str], scopes: frozenset[str] = frozenset()) -> list[tuple[bytes, Caller]]:
    digests = map(_digest, keys)
    return [(digest, Caller(key=digest.hex()[:8], scopes=scopes)) for digest in digests]


def caller_of(scope: Scope) -> Caller:
    """Whom `identify` found."""
    return exchange_of(scope).caller


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
