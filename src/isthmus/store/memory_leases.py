"""What the memory store knows of other workers: who is at work on what, and who waits for a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from isthmus.ports import Held, Signal

Key = tuple[str, str]
"""Owner and name."""


@dataclass(slots=True)
class _Lease:
    holder: str
    until: float
    words: list[str] = field(default_factory=list)


class Leases:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._leases: dict[Key, _Lease] = {}

    def claim(self, key: Key, holder: str, seconds: float) -> bool:
        until, live = self._now() + seconds, self._live(key)
        if live is None:
            self._leases[key] = _Lease(holder, until)
        elif live.holder == holder:
            live.until = until
        else:
            return False
        return True

    def renew(self, holder: str, seconds: float) -> Held:
        now = self._now()
        mine = {key: lease for key, lease in self._leases.items() if lease.holder == holder and lease.until > now}
        signals = tuple(Signal(*key, word) for key in sorted(mine) for word in mine[key].words)
        for lease in mine.values():
            lease.until, lease.words = now + seconds, []
        return Held(frozenset(mine), signals)

    def release(self, key: Key, holder: str) -> bool:
        mine = key in self._leases and self._leases[key].holder == holder
        if mine:
            del self._leases[key]
        return mine

    def tell(self, key: Key, word: str) -> tuple[bool, bool]:
        """Whether there is a holder, and whether it did not have the word yet."""
        live = self._live(key)
        fresh = live is not None and word not in live.words
        if live is not None and fresh:
            live.words.append(word)
        return live is not None, fresh

    def holder(self, key: Key) -> str | None:
        live = self._live(key)
        return live.holder if live is not None else None

    def sweep(self) -> None:
        now = self._now()
        self._leases = {key: lease for key, lease in self._leases.items() if lease.until > now}

    def _live(self, key: Key) -> _Lease | None:
        lease = self._leases.get(key)
        return lease if lease is not None and lease.until > self._now() else None


class Changes:
    """Counts changes, and wakes those who wait for the next one."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: dict[asyncio.Event, None] = {}
        """In the order in which they came, and are woken: the same steps always have the same end."""

    def tell(self) -> None:
        self._count += 1
        for waiting in self._waiting:
            waiting.set()

    def tell_if(self, changed: bool) -> bool:
        """An attempt in vain is no change: two who wait for a lease must not wake each other for ever."""
        if changed:
            self.tell()
        return changed

    async def watch(self, seconds: float, since: int | None) -> int:
        if since is None or since == self._count:
            changed = asyncio.Event()
            self._waiting[changed] = None
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await changed.wait()
            finally:
                del self._waiting[changed]
        return self._count
