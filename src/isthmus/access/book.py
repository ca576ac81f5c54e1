"""The keys of the store in memory, so that nobody waits for a disk to be let in.

In: the store. Out: whose key has this digest. The store is asked twice a second whether anything has changed, so that a
key which is revoked anywhere is refused everywhere within a second. Whoever else has to obey what an operator did at
another gateway is told in the same look. While it cannot be asked, what was known last is
believed for a while (`server.stale_keys`), and then nobody is let in: a store that is away must not be a way in.

Once there is a key, one is needed, also when all of them are revoked or out of date: the end of the last key is no
invitation.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Final, Generic, Literal, TypeVar

from isthmus.errors import IsthmusError, StoreUnavailable
from isthmus.log import tell
from isthmus.ports.keys import KeyBook, StoredKey

log = logging.getLogger("isthmus.access")
T = TypeVar("T")

PACE: Final = 0.4
"""Seconds between two looks."""
_PATIENCE: Final = 5.0
"""Seconds that a look may take."""
DEFAULT_STALE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    digest: bytes
    holder: T | None
    until: float = inf
    """When it opens nothing any more; 0: it does not."""


class Book(Generic[T]):
    def __init__(
        self,
        store: KeyBook,
        make: Callable[[StoredKey], T],
        *,
        stale: float = DEFAULT_STALE,
        alone: bool = False,
        obey: Callable[[], Awaitable[None]] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`make`: what whoever asks wants to have of a key. `alone`: nobody but this machine can ask, so that a gateway
        which never had a key may go on without its store. `obey`: called when there are deeds that were not there."""
        self._store = store
        self._make = make
        self._stale = stale
        self._alone = alone
        self._obey = obey
        self._now = now
        self._nobody: Entry[T] = Entry(secrets.token_bytes(32), None, 0.0)
        self._entries: dict[bytes, Entry[T]] = {}
        self._named: dict[str, Entry[T]] = {}
        self._mark: int | None = None
        self._seen = -inf
        """When the store last said how things are, by the loop's clock."""
        self._one = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._trouble = ""

    @property
    def needed(self) -> bool:
        """Whether there is, or was, a key."""
        return bool(self._named)

    def check(self) -> None:
        """Raises `StoreUnavailable` where what is known is too old to let anybody in."""
        age = asyncio.get_running_loop().time() - self._seen
        if age > self._stale and (self.needed or not self._alone or self._mark is None):
            raise StoreUnavailable(
                f"nobody can be let in: the store has not said for {_spoken(age)} which keys are in force "
                f"(`server.stale_keys`){self._trouble and f': {self._trouble}'}"
            )

    def find(self, digest: bytes) -> T | Literal["over"] | None:
        """Whose key it is; `over`: it was one. The same is done for every digest, whichever it is."""
        entry = self._entries.get(digest, self._nobody)
        same = hmac.compare_digest(entry.digest, digest)
        in_force = self._now() < entry.until
        return entry.holder if same and in_force else "over" if same else None

    def named(self, id: str) -> T | None:
        """Whose key has this id, if it is in force."""
        entry = self._named.get(id)
        return entry.holder if entry is not None and self._now() < entry.until else None

    async def look(self) -> None:
        """Read what has changed. Raises what keeps the store from telling."""
        async with self._one, asyncio.timeout(_PATIENCE):
            began = asyncio.get_running_loop().time()
            mark = await self._store.keys_mark()
            if mark != self._mark:
                # The mark first: whatever changes meanwhile is read now, and once more with the next look.
                self._read(await self._store.keys())
                if self._obey is not None:
                    await self._obey()
                self._mark = mark
            self._seen = began

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_looking(), name="look at the keys")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(PACE)
            try:
                await self.look()
            except (IsthmusError, TimeoutError) as error:
                self._complain(str(error) or f"no answer within {_PATIENCE:g} s")
            except Exception as error:  # whatever it is: without this task nobody would ever hear of a revoked key
                self._complain(repr(error), error)
            else:
                if self._trouble:
                    self._trouble = ""
                    tell(log, "info", "keys.read", keys=len(self._named))

    def _complain(self, reason: str, trace: BaseException | None = None) -> None:
        if reason != self._trouble:
            self._trouble = reason
            tell(log, "error", "keys.unread", reason=reason, believed=f"{self._stale:g} s", trace=trace)

    def _read(self, keys: list[StoredKey]) -> None:
        entries: dict[bytes, Entry[T]] = {}
        named: dict[str, Entry[T]] = {}
        for key in keys:
            holder = self._make(key)
            until = 0.0 if key.revoked_at else key.expires_at or inf
            named[key.id] = entries[key.digest] = Entry(key.digest, holder, until)
            if key.previous:
                entries[key.previous] = Entry(key.previous, holder, min(until, key.previous_until))
        self._entries, self._named = entries, named


def _spoken(seconds: float) -> str:
    return "long" if seconds == inf else f"{seconds:.0f} s"
