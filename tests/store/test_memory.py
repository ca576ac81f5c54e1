from __future__ import annotations

import asyncio

import pytest

from isthmus.errors import RequestRefused
from isthmus.ports import EventBatch
from isthmus.store.memory import MemoryStore
from stored import message, turn


def test_the_least_recently_used_response_is_evicted() -> None:
    async def ask() -> None:
        store = MemoryStore(max_responses=3)
        for id in ("a", "b", "c"):
            await store.save(turn(id))
        await store.load("a")
        await store.save(turn("d"))
        assert [id for id in "abcd" if await store.load(id)] == ["a", "c", "d"]
        assert (await store.stats()).pieces == 6

    asyncio.run(ask())


def test_a_conversation_in_use_stays_together() -> None:
    async def ask() -> None:
        store = MemoryStore(max_responses=4)
        await store.save(turn("r1"))
        await store.save(turn("r2", "r1"))
        for number in range(20):
            await store.save(turn(f"other{number}"))
            assert len(await store.chain("r2")) == 2

    asyncio.run(ask())


def test_a_conversation_that_outgrows_the_store_is_refused_not_cut() -> None:
    async def ask() -> None:
        store = MemoryStore(max_responses=2)
        for number in range(3):
            await store.save(turn(f"r{number}", f"r{number - 1}" if number else None))
        assert await store.load("r2") is not None
        with pytest.raises(RequestRefused, match="`r0` was not found"):
            await store.chain("r2")

    asyncio.run(ask())


def test_bytes_are_bounded_too_but_the_newest_response_is_never_evicted() -> None:
    async def ask() -> None:
        store = MemoryStore(max_bytes=50_000)
        for number in range(20):
            await store.save(turn(f"r{number}", input=(message(f"{number}" * 10_000),)))
            assert (await store.stats()).bytes <= 50_000
        await store.save(turn("huge", input=(message("x" * 100_000),)))
        assert await store.load("huge") is not None
        assert (await store.stats()).responses == 1

    asyncio.run(ask())


def test_a_running_response_is_evicted_last() -> None:
    async def ask() -> None:
        store = MemoryStore(max_responses=2)
        await store.save(turn("running", status="in_progress"), events=EventBatch(0, (b"{}",)))
        for id in ("a", "b", "c"):
            await store.save(turn(id))
        assert await store.events("running") == [b"{}"]

    asyncio.run(ask())


def test_deleting_everything_gives_every_byte_back() -> None:
    async def ask() -> None:
        store = MemoryStore()
        await store.save(turn("r1", big="x" * 1000), events=EventBatch(0, (b"{}",)))
        await store.save(turn("r2", "r1", big="x" * 1000))
        await store.append_events("r2", EventBatch(0, (b"{}",)))
        await store.delete("r1")
        await store.delete("r2")
        stats = await store.stats()
        assert (stats.bytes, stats.pieces) == (0, 0)

    asyncio.run(ask())
