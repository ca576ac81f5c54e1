"""Requests that their clients name, so that asking again gives what was made the first time, and makes nothing twice.

A lease says that somebody is at a request; what is made for it is noted before it is begun, and is found again once it
is stored. What failed, or was left by its client, is made anew: then there is nothing that could be given back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.locks import Locks
from isthmus.gateway.resume import is_background
from isthmus.ports import APPENDING, NamedRequest, Store, StoredResponse, request_lease

HEADER = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Naming:
    """One request under its name."""

    found: StoredResponse | None
    """What was made for it before."""
    _store: Store
    _now: Callable[[], float]
    _name: str
    _digest: bytes
    _owner: str
    _keep: float

    async def makes(self, id: str) -> None:
        """This is what is being made for it: to be told before anything is sent."""
        now = self._now()
        asked = NamedRequest(self._digest, id, now)
        await self._store.name_request(self._name, asked, owner=self._owner, since=now - self._keep)


class Named:
    def __init__(self, store: Store, locks: Locks, *, keep: float, now: Callable[[], float]) -> None:
        self._store = store
        self._locks = locks
        self.keep = keep
        """Seconds that a name is remembered; 0: none is."""
        self._now = now

    @asynccontextmanager
    async def at(self, caller: Caller, name: str, digest: bytes) -> AsyncIterator[Naming]:
        """Be at a request; nobody else is meanwhile, in any process. Refused where another request had that name, or
        where somebody is at it already."""
        owner = caller.owner
        lock = await self._locks.take(owner, request_lease(name))
        try:
            known = await self._store.named_request(name, owner=owner, since=self._now() - self.keep)
            if known is not None and known.digest != digest:
                raise _reused(name)
            found = await self._store.load(known.id, owner=owner) if known is not None else None
            if found is not None and not (is_background(found) or found.status in APPENDING):
                found = None
            if found is None and lock is None:
                raise _under_way(name)
            yield Naming(found, self._store, self._now, name, digest, owner, self.keep)
        finally:
            if lock is not None:
                await lock.release()


def _reused(name: str) -> RequestRefused:
    words = f"another request was made with the {HEADER} `{name}`; send the same body, or another key"
    return RequestRefused(words, code="idempotency_key_reused", param=HEADER)


def _under_way(name: str) -> RequestRefused:
    words = f"a request with the {HEADER} `{name}` is being answered; ask again in a moment for what comes of it"
    return RequestRefused(words, code="idempotency_key_in_use", param=HEADER)
