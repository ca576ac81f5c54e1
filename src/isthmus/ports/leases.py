"""Leases: which process is at work on what, and the words that others have for it."""

from __future__ import annotations

from typing import Protocol

from isthmus.ports.records import EXPIRED_AT_ONCE, LOCAL, Held, StoredResponse


class Leases(Protocol):
    """A lease has an owner, a name, a holder (one process) and an end. One that has ended is as good as gone."""

    async def claim(self, name: str, *, owner: str = LOCAL, holder: str, seconds: float) -> bool:
        """Take a lease that nobody holds (or no longer), or extend one's own: it ends `seconds` from now.

        False: somebody else holds it. Claim `run:<id>` before the response is first saved as unfinished, or another
        process takes it for an orphan in between.
        """

    async def renew(self, holder: str, *, seconds: float) -> Held:
        """Extend every lease that this holder still has, and hear what it was told: each signal comes out once.

        To be called several times within the length of a lease. A lease that has ended is not extended, even if
        nobody took it: `claim` it again.
        """

    async def release(self, name: str, *, owner: str = LOCAL, holder: str) -> None:
        """Give a lease back, with the signals that nobody heard. Somebody else's is left alone."""

    async def signal(self, name: str, word: str, *, owner: str = LOCAL) -> bool:
        """Tell the holder of a lease a word; the same word is told once until it is heard. False: nobody holds it.

        True says that there is a holder, not that it has heard: look for what it does (`watch`), and at the lease's
        end look again. A word is for the one who holds the lease now: whoever takes it over does not hear it.
        """

    async def expired(self, *, most: int = EXPIRED_AT_ONCE) -> list[StoredResponse]:
        """Orphans: unfinished responses of every owner whose lease `run:<id>` nobody holds, the oldest first, `most`
        of them.

        Several processes may see the same ones. Whoever wants to end one claims its lease first.
        """

    async def watch(self, seconds: float, *, since: int | None = None) -> int:
        """Wait until something may have changed, here or in another process, `seconds` at the longest.

        Wakes too often rather than too late. The answer is a mark: given back as `since`, it makes the wait begin
        where the last one ended, so that nothing in between is missed. Marks are good for one store object.

            mark = await store.watch(0)
            while not (found := await look()):
                mark = await store.watch(5, since=mark)
        """
