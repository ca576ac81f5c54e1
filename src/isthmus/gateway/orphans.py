"""Background responses that nobody makes any more: their gateway crashed or was cut off, and their lease has run out.

Whoever gets the lease decides: what nobody was told anything of is made again, once; the rest ends, with a reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.runs import Runs, unexpected
from isthmus.log import tell
from isthmus.ports import UNFINISHED, Store, StoredResponse, run_lease

log = logging.getLogger("isthmus.gateway")

MakeAgain = Callable[[StoredResponse], Awaitable[bool]]
"""Starts a response anew; False: what it takes was not noted."""

_LOOKS: Final = 4
"""How often within the length of a lease it is looked for what others left behind."""
_AT_ONCE: Final = 8
"""How many are in memory at the same time."""
_STOPPED: Final = "the gateway stopped while this response was being made"


class Orphans:
    def __init__(self, store: Store, runs: Runs, make_again: MakeAgain, *, lease: float) -> None:
        self._store = store
        self._runs = runs
        self.make_again = make_again
        """Replaced when another configuration counts."""
        self._lease = lease

    async def keep_looking(self) -> None:
        """Look after what others leave behind, for as long as this gateway lives."""
        while True:
            try:
                await self.look()
            except Exception as error:
                tell(log, "error", "recovery.failed", reason=error, trace=unexpected(error))
            await asyncio.sleep(self._lease / _LOOKS)

    async def look(self) -> int:
        """How many there were. A few at a time: each is as large as its request, and a crash may leave a thousand."""
        seen: set[tuple[str, str]] = set()
        while True:
            left = await self._store.expired(most=_AT_ONCE)
            before = len(seen)
            seen |= {(record.owner, record.id) for record in left}
            for record in left:
                # One of ours whose lease ran out while this process slept is none: it will be renewed.
                if self._runs.get(record.owner, record.id) is None and await self._claim(record):
                    await self._take_over(record)
            if len(left) < _AT_ONCE or len(seen) == before:  # the rest, if any, waits for the next look
                return len(seen)

    async def end(self, record: StoredResponse, status: str, why: str = "") -> StoredResponse | None:
        """End it, by whoever gets its lease; `None`: another gateway was quicker."""
        if not await self._claim(record):
            return None
        fields = {"error": {"code": "server_error", "message": why}} if why else None
        announcer = self._runs.announcer
        notices = announcer.notices(record.id, record.owner, status)
        try:
            await self._store.update_status(
                record.id, status, owner=record.owner, only_from=UNFINISHED, fields=fields, notices=notices
            )
            announcer.queued()
        finally:
            await self._release(record)
        return await self._store.load(record.id, owner=record.owner)

    async def _take_over(self, record: StoredResponse) -> None:
        why = _STOPPED
        # Only now that it is ours: whoever had it may have been asleep, and have told something on waking.
        if not await self._was_told(record):
            try:
                if await self.make_again(record):
                    tell(log, "warning", "background.again", id=record.id)
                    return
            except RequestRefused as refused:
                if refused.code == "conversation_locked":  # perhaps by the gateway that died: it will be free
                    await self._release(record)
                    return
                why = f"{_STOPPED}, and it cannot be made again: {refused.message}"
            except IsthmusError as error:  # no room just now: it stays as it is until the next look
                tell(log, "warning", "background.not_again", id=record.id, reason=error)
                await self._release(record)
                return
        tell(log, "warning", "background.orphan", id=record.id, reason=why)
        await self.end(record, "failed", why)

    async def _was_told(self, record: StoredResponse) -> bool:
        try:
            return bool(await self._store.events(record.id, owner=record.owner))
        except RequestRefused:  # so much that the first of it is not kept any more
            return True

    async def _claim(self, record: StoredResponse) -> bool:
        name, holder = run_lease(record.id), self._runs.holder
        return await self._store.claim(name, owner=record.owner, holder=holder, seconds=self._lease)

    async def _release(self, record: StoredResponse) -> None:
        await self._store.release(run_lease(record.id), owner=record.owner, holder=self._runs.holder)
