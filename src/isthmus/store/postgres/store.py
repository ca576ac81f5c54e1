"""The PostgreSQL store: the contract of `ports.Store`, each method one transaction on one of a few connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from isthmus.store.postgres.changes import Changes
from isthmus.store.postgres.connect import Options
from isthmus.store.postgres.medium import Medium
from isthmus.store.postgres.migrations import migrate
from isthmus.store.postgres.pool import Pool

Timed = Callable[[str, float], None]
"""Hears how many seconds a `read` or a `write` took."""


class PostgresStore:
    def __init__(
        self,
        options: Options,
        *,
        connections: int = 8,
        queue_size: int = 1024,
        max_event_bytes: int = 16 * 1024 * 1024,
        poll_seconds: float = 1.0,
        retry_seconds: float = 0.25,
        now: Callable[[], float] | None = None,
        timed: Timed = lambda operation, seconds: None,
    ) -> None:
        """Connects and brings the schema up to date, in the calling thread: this is for the start of a process.

        The clock of the leases is the database's, unless `now` gives another one. A server that is away is tried again
        every `retry_seconds`. `timed` hears of every read and write.
        """
        medium = self._medium = Medium(options)
        with closing(medium.connect()) as connection:
            migrate(connection, options)
        self._max_event_bytes = max_event_bytes
        self._now = now
        self._changes = Changes(medium, poll_seconds=poll_seconds, retry_seconds=retry_seconds)
        self.pool = Pool(
            medium, connections=connections, queue_size=queue_size, timed=timed, changed=self._changes.changed
        )

    async def check(self) -> None:
        self._medium.check()

    async def watch(self, seconds: float, *, since: int | None = None) -> int:
        return await self._changes.watch(seconds, since)

    async def aclose(self) -> None:
        await self.pool.aclose()
        await self._changes.aclose()
