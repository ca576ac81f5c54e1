"""What is done with keys, at a terminal, over HTTP or on the page: one way to do each thing, and each leaves its deed.

A key itself is told once, by what made it, and never again. One that changes its team leaves behind what it made until
then: that belongs to whom it was made for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from isthmus.access.secret import KEY, SHOWN, digest_of, new_key, new_key_id
from isthmus.access.wishes import Wishes, changes, wished
from isthmus.errors import RequestRefused
from isthmus.ports.keys import MOST_DEEDS, Deed, KeyBook, StoredKey

LONGEST_GRACE: Final = 30 * 86_400.0
"""Seconds that the key before may open at the most."""
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Made:
    key: StoredKey
    secret: str
    """The key itself, here and nowhere else."""


class Keeper:
    def __init__(
        self,
        store: KeyBook,
        actor: str,
        *,
        about: Mapping[str, str] | None = None,
        most: int = MOST_DEEDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`actor`: who does it; `about`: what else is to be told of them. `most`: deeds that are remembered."""
        self._about = dict(about or {})
        self._store = store
        self._actor = actor
        self._most = most
        self._now = now

    async def create(self, wishes: Wishes) -> Made:
        now, secret = self._now(), new_key()
        blank = StoredKey(new_key_id(), "", digest_of(secret), secret[:SHOWN], now)
        key = wished(blank, wishes, now)
        await self._store.add_key(key, self._deed("key.create", key, **changes(blank, key)), most=self._most)
        return Made(key, secret)

    async def list(self) -> list[StoredKey]:
        return await self._store.keys()

    async def find(self, word: str) -> StoredKey:
        """By its id, by its name, or by how it begins; of several with one name that which is in force."""
        keys = await self._store.keys()
        if word.startswith(KEY):
            found = [key for key in keys if len(word) >= SHOWN and word.startswith(key.prefix)]
        else:
            found = [key for key in keys if word in (key.id, key.name)]
        in_force = [key for key in found if key.in_force(self._now())] or found
        if not in_force:
            words = f"there is no key `{word[:SHOWN]}{'…' if word[SHOWN:] and word.startswith(KEY) else word[SHOWN:]}`"
            raise RequestRefused(f"{words}; `isthmus keys list --all` shows those that there are", code="key_not_found")
        if len(in_force) > 1:
            ids = ", ".join(f"`{key.id}`" for key in in_force[:5])
            raise RequestRefused(f"several keys are called `{word[:SHOWN]}`: {ids}; name one by its id", param="id")
        return in_force[0]

    async def change(self, id: str, wishes: Wishes) -> StoredKey:
        def change(key: StoredKey) -> StoredKey:
            return wished(key, wishes, self._now())

        return await self._change(id, "key.change", change)

    async def revoke(self, id: str) -> StoredKey:
        """Also one that is out of date: it may not be made longer then."""
        return await self._change(id, "key.revoke", lambda key: replace(key, revoked_at=self._now()))

    async def rotate(self, id: str, grace: float = 0.0) -> Made:
        """Another key in its place; the one before opens for as long as `grace` says."""
        if not 0 <= grace <= LONGEST_GRACE:
            words = f"`grace` must be from 0 to {LONGEST_GRACE:.0f} seconds (30 days)"
            raise RequestRefused(words, code="invalid_value", param="grace")
        secret = new_key()

        def change(key: StoredKey) -> StoredKey:
            if not key.in_force(self._now()):
                words = f"the time of key `{key.name}` is over; change its expiry first, or create another one"
                raise RequestRefused(words, code="key_changed")
            return replace(
                key,
                digest=digest_of(secret),
                prefix=secret[:SHOWN],
                previous=key.digest if grace else b"",
                previous_until=self._now() + grace if grace else 0.0,
            )

        return Made(await self._change(id, "key.rotate", change, grace=f"{grace:g}"), secret)

    async def note(self, action: str, target: str, **details: str) -> None:
        """Something else that was done, and changed no key."""
        deed = Deed(self._now(), self._actor, action, target, details | self._about)
        await self._store.note_deed(deed, most=self._most)

    async def _change(
        self, id: str, action: str, change: Callable[[StoredKey], StoredKey], **details: str
    ) -> StoredKey:
        for _ in range(_TRIES):
            key = await self.find(id)
            if key.revoked_at:
                words = f"key `{key.name}` (`{key.id}`) was revoked, and stays so; create another one"
                raise RequestRefused(words, code="key_changed")
            changed = change(key)
            if changed == key:
                return key
            told = {"name": key.name, **details, **changes(key, changed)}
            if await self._store.change_key(changed, self._deed(action, key, **told), was=key, most=self._most):
                return changed
        words = f"key `{id}` is being changed by others at the same time; look at it, and try again"
        raise RequestRefused(words, code="key_changed")

    def _deed(self, action: str, key: StoredKey, **details: str) -> Deed:
        return Deed(self._now(), self._actor, action, key.id, details | self._about)
