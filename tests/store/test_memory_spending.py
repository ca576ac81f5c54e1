"""Memory keeps so many sums and no more, and nothing of what is over."""

from __future__ import annotations

import asyncio

import pytest

from every_store import Clock
from isthmus.ports.spending import SETTLED_KEPT, Hold, Use
from isthmus.store import memory_spending
from isthmus.store.memory import MemoryStore


def test_the_oldest_days_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_spending, "MAX_USES", 3)

    async def ask() -> None:
        store = MemoryStore()
        for day in (4, 1, 3, 2, 5):
            await store.note_uses([Use(f"2026-11-0{day}", "o", "k", "", "p", "m", requests=1)])
        kept = await store.uses(since="2026-01-01", until="2026-12-31")
        assert [each.day for each in kept] == ["2026-11-03", "2026-11-04", "2026-11-05"]

    asyncio.run(ask())


def test_what_is_over_leaves_nothing_behind() -> None:
    async def ask() -> None:
        clock = Clock()
        store = MemoryStore(now=clock)
        for number in range(50):
            await store.hold(f"r{number}", [Hold(f"key:{number}", "2026-11-17", 1, 10)], seconds=1)
            await store.settle(f"r{number}", [])
        clock.at += SETTLED_KEPT
        await store.settle("last", [])
        assert store._holds == {}
        assert list(store._settled) == ["last"]

    asyncio.run(ask())
