"""Sessions of the page that their people have ended: their cookies are worth nothing any more, at any gateway on the
store.

They are kept there as named requests are, by the digest of the session's word, until they would end by themselves.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from isthmus.ports.requests import NamedRequest, NamedRequests

_OWNER: Final = "page"
"""Nobody's: owners of things are `local`, keys (`key_…`) and teams (`team:…`)."""


class Ended:
    def __init__(self, store: NamedRequests) -> None:
        self._store = store

    async def add(self, word: str, until: float) -> None:
        """`until`: when it would be over anyway."""
        await self._store.name_request(_name(word), NamedRequest(b"", "", until), owner=_OWNER)

    async def has(self, word: str, now: float) -> bool:
        return await self._store.named_request(_name(word), owner=_OWNER, since=now) is not None


def _name(word: str) -> str:
    return f"session:{sha256(word.encode()).hexdigest()}"
