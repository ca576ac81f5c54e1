"""Keys in memory go with it."""

from __future__ import annotations

import asyncio

from isthmus.store.memory import MemoryStore
from keyed import deed, stored_key


def test_another_store_has_keys_of_its_own() -> None:
    async def ask() -> None:
        one, two = MemoryStore(), MemoryStore()
        await one.add_key(stored_key(), deed())
        assert (await two.keys(), await two.deeds(), await two.keys_mark()) == ([], [], 0)
        told = await one.keys()
        told.clear()
        assert await one.keys() == [stored_key()], "what was told is nobody's to change"

    asyncio.run(ask())
