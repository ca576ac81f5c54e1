"""Memory keeps so many names and no more."""

from __future__ import annotations

import asyncio

import pytest

from isthmus.ports import NamedRequest
from isthmus.store import memory_requests
from isthmus.store.memory import MemoryStore


def test_the_oldest_names_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_requests, "MAX_REQUESTS", 3)

    async def ask() -> None:
        store = MemoryStore()
        for number in range(4):
            await store.name_request(f"k{number}", NamedRequest(b"", "r", 1.0))
        await store.name_request("k1", NamedRequest(b"", "again", 1.0))
        await store.name_request("k4", NamedRequest(b"", "r", 1.0))
        assert [number for number in range(5) if await store.named_request(f"k{number}")] == [1, 3, 4]

    asyncio.run(ask())
