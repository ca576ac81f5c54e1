from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from isthmus.store.sqlite.store import SqliteStore
from stored import turn


def calls_on_the_loop(work: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[int]]:
    """How many calls the loop's own thread makes meanwhile: what it costs everybody else, on any machine."""

    async def count() -> int:
        made = 0

        def see(frame: Any, event: str, argument: Any) -> None:
            nonlocal made
            made += 1

        sys.setprofile(see)
        try:
            await work()
        finally:
            sys.setprofile(None)
        return made

    return count


def fill(path: Path, kept: int) -> Path:
    """Twenty old conversations, and `kept` of today."""

    async def save() -> None:
        store = SqliteStore(path)
        await asyncio.gather(*(store.save(turn(f"old{number}", at=1.0)) for number in range(20)))
        await asyncio.gather(*(store.save(turn(f"new{number}", at=9000.0 + number)) for number in range(kept)))
        await store.aclose()

    asyncio.run(save())
    gc.collect()  # what all those saves left behind is nobody's cost below
    return path


def test_what_is_kept_costs_the_loop_nothing(tmp_path: Path) -> None:
    async def cost(path: Path) -> int:
        store = SqliteStore(path)
        try:
            return await calls_on_the_loop(lambda: store.prune(older_than=1000.0))()
        finally:
            assert await store.load("old0") is None
            assert await store.load("new0") is not None
            await store.aclose()

    few, many = (asyncio.run(cost(fill(tmp_path / f"{kept}.db", kept))) for kept in (50, 2000))
    assert many < few * 2, "work of the loop must not grow with what stays"


def test_stats_and_recovery_cost_the_loop_the_same_for_any_number_of_rows(tmp_path: Path) -> None:
    async def cost(path: Path) -> int:
        store = SqliteStore(path)

        async def ask() -> None:
            await store.stats()
            await store.expired()

        try:
            return await calls_on_the_loop(ask)()
        finally:
            await store.aclose()

    few, many = (asyncio.run(cost(fill(tmp_path / f"{kept}.db", kept))) for kept in (50, 2000))
    assert many < few * 2


def test_saves_go_on_between_the_steps(tmp_path: Path) -> None:
    """A thousand turns of one conversation go in several transactions, and a save finds its way in between."""

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        for number in range(1000):
            await store.save(turn(f"r{number}", f"r{number - 1}" if number else None, at=float(number)))
        before = store.writer.commits
        pruning = asyncio.ensure_future(store.prune(older_than=5000.0))
        saved = 0
        while not pruning.done():
            await store.save(turn(f"new{saved}", at=9000.0))
            saved += 1
        assert (await pruning).responses == 1000
        assert store.writer.commits - before > 1000 // 200
        assert (await store.stats()).responses == saved
        await store.aclose()

    asyncio.run(ask())


def test_a_parent_that_is_newer_than_its_child_waits_for_its_own_turn(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("parent", at=50.0))
        await store.save(turn("child", "parent", at=10.0))
        await store.save(turn("other", at=60.0))
        assert (await store.prune(older_than=40.0)).responses == 1
        assert [id for id in ("parent", "child", "other") if await store.load(id)] == ["parent", "other"]
        await store.save(turn("child", "parent", at=10.0))
        assert (await store.prune(older_than=100.0)).responses == 3
        await store.aclose()

    asyncio.run(ask())
