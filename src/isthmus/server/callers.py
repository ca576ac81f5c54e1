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
_OPEN: Final = ("/health", "/api/hello")
"""Say nothing but that the process answers; whoever looks after it, or for it, has no key."""


class Keys:
    def __init__(self, keys: Sequence[str] = (), admin: str = "") -> None:
        known = [(key, frozenset[str]()) for key in keys] + ([(admin, ADMIN)] if admin else [])
        digests = [(_digest(key), scopes) for key, scopes in known]
        self._known = [(digest, Caller(key=digest.hex()[:8], scopes=scopes)) for digest, scopes in digests]

    @property
    def needed(self) -> bool:
        return bool(self._known)

    def identify(self, scope: Scope) -> Caller:
        """The caller of this request; refused where a key is needed and none that we know is shown."""
        client = recognise_client(originator=header(scope, b"originator"), user_agent=header(scope, b"user-agent"))
        caller = self._find(scope) if self._known and scope["path"] not in _OPEN else LOCAL
        return caller if client is caller.client else replace(caller, client=client)

    def _find(self, scope: Scope) -> Caller:
        kind, _, key = header(scope, b"authorization").partition(" ")
        given = key.strip() if kind.lower() == "bearer" else header(scope, b"x-api-key")
        if not given:
            words = "no API key; send `Authorization: Bearer KEY` or `x-api-key: KEY`"
            raise RequestRefused(words, code="missing_api_key")
        digest = _digest(given)
        found = [caller for known, caller in self._known if hmac.compare_digest(known, digest)]
        if not found:
            words = "this API key is not known here; send one of those in `server.api_keys`"
            raise RequestRefused(words, code="invalid_api_key")
        return found[-1]


def caller_of(scope: Scope) -> Caller:
    """Whom `identify` found."""
    return exchange_of(scope).caller


def _digest(key: str) -> bytes:
    return sha256(key.encode()).digest()
