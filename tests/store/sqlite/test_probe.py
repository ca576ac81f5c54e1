from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.store.sqlite.probe import probe
from isthmus.store.sqlite.store import SqliteStore
from stored import turn


def test_a_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("r1"))
        before = await store.stats()

        def try_it(connection: object) -> None:
            connection.execute("COMMIT")  # type: ignore[attr-defined]  # it makes its own
            probe(connection)  # type: ignore[arg-type]
            connection.execute("BEGIN")  # type: ignore[attr-defined]
            connection.execute("SAVEPOINT job")  # type: ignore[attr-defined]

        await store.writer.run(try_it)
        after = await store.stats()
        assert (after.responses, after.pieces, after.newest) == (before.responses, before.pieces, before.newest)
        await store.aclose()

    asyncio.run(ask())


def test_room_for_a_few_bytes_is_not_enough_to_begin_again(tmp_path: Path) -> None:
    """Small writes fit into the file for long: a response does not."""

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", retry_seconds=0.01)
        run = store.writer.run
        pages = await run(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
        await run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages + 3}").fetchone())
        with pytest.raises(StoreUnavailable, match="free some space"):
            await store.save(turn("r1", numbers=[f"{number:06d}" for number in range(40_000)]))
        await store.claim("name", holder="me", seconds=9)
        with pytest.raises(StoreUnavailable, match="free some space"):
            await store.check()
        await run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())
        async with asyncio.timeout(60):
            while True:
                try:
                    await store.check()
                    break
                except StoreUnavailable:
                    await asyncio.sleep(0.01)
        assert await store.save(turn("r1"))
        await store.aclose()

    asyncio.run(ask())
