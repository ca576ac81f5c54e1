"""Each change is made under the lock of its conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.ports import StoredConversation
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import lock
from isthmus.store.postgres.store import PostgresStore
from stored import message

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_a_change_waits_for_who_is_at_the_same_conversation(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        for id in ("one", "other"):
            await store.start_conversation(StoredConversation(id, 1.0))
        connection.execute("BEGIN")
        lock(connection, "conversation:one")
        adding = asyncio.create_task(store.add_items("one", [message("hi", "a")], most=9))
        assert await store.add_items("other", [message("hi", "a")], most=9)
        while connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not adding.done()
        connection.execute("COMMIT")
        assert await adding

    asked(ask)
