"""What memory lets go is listed no more."""

from __future__ import annotations

import asyncio

from isthmus.store.memory import MemoryStore
from store.test_chats import completion, ids


def test_an_evicted_completion_is_listed_no_more() -> None:
    async def ask() -> None:
        store = MemoryStore(max_responses=2)
        for number in range(4):
            await store.save_chat(completion(f"c{number}"), {"a": "b"})
        assert await ids(store, metadata={"a": "b"}) == (["c2", "c3"], False)
        await store.aclose()
        assert await ids(store) == ([], False)

    asyncio.run(ask())


def test_a_completion_that_changes_keeps_its_place_and_one_that_is_gone_does_not_come_back() -> None:
    async def ask() -> None:
        store = MemoryStore()
        for number in range(3):
            await store.save_chat(completion(f"c{number}"), {})
        await store.update_chat("c0", {"a": "b"})
        assert await ids(store) == (["c0", "c1", "c2"], False)
        await store.delete("c0")
        assert await store.update_chat("c0", {"a": "c"}) is None

    asyncio.run(ask())
