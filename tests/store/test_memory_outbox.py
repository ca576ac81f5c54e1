"""What only the outbox of the memory store does; what it has in common with the others is asked in `test_outbox`."""

from __future__ import annotations

import asyncio

from isthmus.ports import Notice
from isthmus.store.memory import MemoryStore
from stored import turn

NOTICE = Notice("n1", "hook", "response.completed", "r1", b"{}")


def test_a_notice_outlives_the_eviction_of_what_it_tells_of() -> None:
    async def ask() -> None:
        store = MemoryStore(max_responses=1)
        await store.save(turn("r1"), notices=[NOTICE])
        await store.save(turn("r2"))
        assert await store.load("r1") is None
        assert [each.notice for each in await store.deliveries()] == [NOTICE]

    asyncio.run(ask())


def test_it_ends_with_its_store() -> None:
    async def ask() -> None:
        store = MemoryStore()
        await store.save(turn("r1"), notices=[NOTICE])
        await store.aclose()
        assert await store.deliveries() == []

    asyncio.run(ask())
