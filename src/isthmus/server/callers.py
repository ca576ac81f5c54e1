"""Who is calling: found out once for each request, before anything else is done.

Keys are kept as digests and compared in constant time: those of the configuration every one of them each time, those of
the store (`access/book.py`) after one lookup by digest. Without keys everybody is `local`; whoever shows one of
`server.api_keys` is `local` as well, so that switching keys on loses nothing. A key of the store has its own owner.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from msgspec.structs import replace
from starlette.types import Scope

from isthmus.access.book import Book
from isthmus.access.secret import digest_of
from isthmus.bridge.types.clients import recognise_client
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.ports.keys import StoredKey
from isthmus.server.exchange import exchange_of
from isthmus.server.http import header

ADMIN: Final = frozenset({"admin"})
METRICS: Final = "/metrics"
PAGE: Final = "/ui"
_OPEN: Final = ("/health", "/api/hello")
"""Say nothing but that the process answers; whoever looks after it, or for it, has no key."""


class Keys:
    def __init__(
        self,
        keys: Sequence[str] = (),
        admin: str = "",
        metrics: str = "",
        book: Book[Caller] | None = None,
        team_models: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        """`metrics` opens `/metrics` and nothing else; where there is such a key, or an operator's, no other of the
        configuration does. `book`: the keys of the store. `team_models`: what the keys of a team are narrowed to, all
        of them."""
        operators = _callers([admin] if admin else [], ADMIN)
        self._known = _callers(keys) + operators
        self._watching = _callers([metrics] if metrics else []) + operators or self._known
        self.book = book
        self._team_models = team_models

    @property
    def needed(self) -> bool:
        return bool(self._known) or (self.book is not None and self.book.needed)

    def identify(self, scope: Scope) -> Caller:
        """The caller of this request; refused where a key is needed and none that we know is shown."""
        client = recognise_client(originator=header(scope, b"originator"), user_agent=header(scope, b"user-agent"))
        caller = self.holder(scope)
        return caller if client is caller.client else caller.speaking(client)

    def holder(self, scope: Scope) -> Caller:
        """The same, whatever client they use."""
        return LOCAL if _is_open(scope) else self._in_team(self._find(scope))

    def find(self, key: str) -> Caller | None:
        """Whose key this is."""
        found = self._holder(digest_of(key), self._known)
        return self._in_team(found) if isinstance(found, Caller) else None

    def named(self, id: str) -> Caller | None:
        """Whose key has this id."""
        found = next((caller for _, caller in self._known if caller.key == id), None)
        if found is not None or self.book is None:
            return found
        self.book.check()
        stored = self.book.named(id)
        return None if stored is None else self._in_team(stored)

    def _in_team(self, caller: Caller) -> Caller:
        models = self._team_models.get(caller.team) if caller.team else None
        return replace(caller, team_models=models) if models else caller

    def still(self, caller: Caller) -> Caller:
        """The same caller as they are now, for what stays open longer than a request; refused if their key is over, or
        if they showed none and one is needed by now."""
        if not self.needed:
            return caller
        found = self.named(caller.key) if caller.key else None
        if found is None:
            words = "the key that this connection was opened with opens nothing any more; connect again with another"
            raise RequestRefused(words, code="invalid_api_key")
        return replace(found, client=caller.client, request=caller.request, asked_at=caller.asked_at)

    def _find(self, scope: Scope) -> Caller:
        watching = scope["path"] == METRICS
        known = self._watching if watching else self._known
        if not known and not self._asks_for_stored():
            return LOCAL
        given = shown_key(scope)
        if not given:
            words = "no API key; send `Authorization: Bearer KEY` or `x-api-key: KEY`"
            raise RequestRefused(words, code="missing_api_key")
        found = self._holder(digest_of(given), known)
        if found == "over":
            words = "this API key was revoked, or its time is over; ask whoever gave it to you for another"
            raise RequestRefused(words, code="invalid_api_key")
        if found is None or (watching and not self._may_watch(found, known)):
            words = "this API key is not known here; send one of those in `server.api_keys`, or of `isthmus keys`"
            if watching:
                words = (
                    "this API key does not open `/metrics`; send the one in `metrics.key`, or `server.admin_key`, or "
                    "one that `isthmus keys create` made with `--endpoints metrics`"
                )
            raise RequestRefused(words, code="invalid_api_key")
        return found

    def _holder(self, digest: bytes, known: Sequence[tuple[bytes, Caller]]) -> Caller | Literal["over"] | None:
        """All of them are looked at, however early it is found, and the store's too. Those of the configuration need no
        store to be believed."""
        found = [caller for each, caller in known if hmac.compare_digest(each, digest)]
        stored = self.book.find(digest) if self.book is not None else None
        if found:
            return found[-1]
        if self.book is not None:
            self.book.check()
        return stored

    def _may_watch(self, caller: Caller, known: Sequence[tuple[bytes, Caller]]) -> bool:
        """What is counted tells of everybody: a key of the store has to be meant for it."""
        ours = any(caller is each for _, each in known)
        return ours or caller.scopes >= ADMIN or "metrics" in caller.grant.endpoints

    def _asks_for_stored(self) -> bool:
        if self.book is None:
            return False
        self.book.check()
        return self.book.needed


def caller_with(key: StoredKey) -> Caller:
    """Who asks with a key of the store."""
    return Caller(
        owner=key.owner,
        key=key.id,
        scopes=ADMIN if key.grant.admin else frozenset(),
        team=key.team,
        grant=key.grant,
        name=key.name,
    )


def shown_key(scope: Scope) -> str:
    kind, _, key = header(scope, b"authorization").partition(" ")
    return key.strip() if kind.lower() == "bearer" else header(scope, b"x-api-key")


def is_page(scope: Scope) -> bool:
    """Whether it is asked for by a browser that shows it: such a page asks for keys itself."""
    path: str = scope["path"]
    if path.startswith(PAGE):
        return path == PAGE or path[len(PAGE)] == "/"
    return path == "/" and "text/html" in header(scope, b"accept")


def _is_open(scope: Scope) -> bool:
    return scope["path"] in _OPEN or is_page(scope)


def _callers(keys: Sequence[str], scopes: frozenset[str] = frozenset()) -> list[tuple[bytes, Caller]]:
    digests = map(digest_of, keys)
    return [(digest, Caller(key=digest.hex()[:8], scopes=scopes)) for digest in digests]


def caller_of(scope: Scope) -> Caller:
    """Whom `identify` found."""
    return exchange_of(scope).caller
