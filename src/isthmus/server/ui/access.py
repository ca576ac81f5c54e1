"""Who may look at the page: on the loopback without keys whoever is there, else whoever has shown a key.

A key is shown once, in a form; from then on a cookie tells who it was. It holds no key: a time, a random word, the
id of the key, and a seal over them that every worker on the same store can check. Whoever shows the admin key sees
everything, any other key what is its owner's. What changes something must come from a page of ours (`Origin`), with
a word that only such a page knows.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from starlette.types import Scope

from isthmus.errors import RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.server.callers import ADMIN, Keys
from isthmus.server.ended import Ended
from isthmus.server.http import header
from isthmus.server.scopes import not_opened, opens

COOKIE: Final = "isthmus_session"
LASTS: Final = 12 * 3600
"""Seconds that a session lasts."""
MOST_TRIES: Final = 10
"""Keys that are looked at within a minute from one address; those that were right do not count."""
MOST_TRIES_OF_ALL: Final = 60
_MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Viewer:
    caller: Caller
    session: str = ""
    """The random word of the session; empty: nobody is asked for a key."""

    @property
    def owner(self) -> str | None:
        """Whose things are shown; `None`: everybody's."""
        return None if not self.session or self.caller.scopes >= ADMIN else self.caller.owner

    @property
    def operates(self) -> bool:
        """Whether settings are shown, and may be switched."""
        return self.owner is None


class Access:
    def __init__(
        self,
        keys: Keys,
        *,
        local: bool,
        secret: bytes | None,
        ended: Ended,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`local`: only this machine can ask. `secret`: what all workers of this gateway have in common."""
        self._keys = keys
        self._local = local
        self._secret = secret or secrets.token_bytes(32)
        self._now = now
        self._tries: deque[tuple[float, str]] = deque()
        self._ended = ended

    @property
    def open(self) -> bool:
        """Whether nobody is asked for a key."""
        return self._local and not self._keys.needed

    async def visitor(self, scope: Scope) -> Viewer | None:
        """Who looks; `None`: somebody who has to show a key first."""
        if self.open:
            return Viewer(LOCAL)
        expires, word, key, seal = (_cookie(scope, COOKIE).split(".") + [""] * 4)[:4]
        if not seal or not hmac.compare_digest(seal.encode(), self._seal("session", expires, word, key).encode()):
            return None
        caller = self._keys.named(key)
        if caller is None or not expires.isdigit() or int(expires) < self._now():
            return None
        if not opens(caller, "page"):  # it was narrowed since
            return None
        if await self._ended.has(word, self._now()):
            return None
        return Viewer(caller, word)

    def enter(self, key: str, peer: str, *, secure: bool) -> str:
        """The cookie for whoever shows this key; refused if it is none of ours, or too many were tried."""
        if not self._keys.needed:
            words = "there is no key to show: set `server.admin_key`, or listen on the loopback alone"
            raise RequestRefused(words, code="invalid_api_key")
        self._slow_down(peer)
        caller = self._keys.find(key)
        if caller is None:
            self._tries.append((self._now(), peer))
            raise RequestRefused("this key is not known here", code="invalid_api_key")
        if not opens(caller, "page"):
            raise not_opened(caller, "page")
        expires, word = str(int(self._now()) + LASTS), secrets.token_hex(16)
        value = ".".join([expires, word, caller.key, self._seal("session", expires, word, caller.key)])
        return _set_cookie(value, LASTS, secure=secure)

    async def leave(self, visitor: Viewer, *, secure: bool) -> str:
        """The cookie that ends the session; it is worth nothing from now on."""
        if visitor.session:
            await self._ended.add(visitor.session, self._now() + LASTS)
        return _set_cookie("", 0, secure=secure)

    def token(self, visitor: Viewer | None) -> str:
        """The word that forms of our pages bring along."""
        return self._seal("form", visitor.session if visitor is not None else "")

    def check_form(self, scope: Scope, visitor: Viewer | None, token: str) -> None:
        """Refuses what no page of ours has sent."""
        origin, host = header(scope, b"origin"), header(scope, b"host")
        if not origin or urlsplit(origin).netloc != host:
            raise RequestRefused("this was not sent by a page of this gateway", code="foreign_origin", param="Origin")
        if not hmac.compare_digest(token.encode(), self.token(visitor).encode()):
            words = "this page is too old, or not from here; load it again"
            raise RequestRefused(words, code="foreign_origin", param="token")

    def _slow_down(self, peer: str) -> None:
        while self._tries and self._tries[0][0] < self._now() - _MINUTE:
            self._tries.popleft()
        if len(self._tries) >= MOST_TRIES_OF_ALL or sum(who == peer for _, who in self._tries) >= MOST_TRIES:
            raise RequestRefused("too many keys were tried; wait a minute", code="rate_limit_exceeded")

    def _seal(self, *words: str) -> str:
        return hmac.new(self._secret, "\n".join(("page", *words)).encode(), sha256).hexdigest()


def _cookie(scope: Scope, name: str) -> str:
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(header(scope, b"cookie"))
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""


def _set_cookie(value: str, lasts: int, *, secure: bool) -> str:
    return f"{COOKIE}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
