from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from isthmus.store.sqlite.store import SqliteStore
from stored import message, turn


def test_reads_go_on_while_the_writer_is_busy(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        await store.save(turn("r1"))
        busy = threading.Event()
        blocked = asyncio.ensure_future(store.writer.run(lambda connection: busy.wait(60)))
        await asyncio.sleep(0)
        assert await asyncio.gather(*(store.load("r1") for _ in range(50))) == [turn("r1")] * 50
        assert not blocked.done()
        busy.set()
        await blocked
        await store.aclose()

    asyncio.run(ask())


def test_readers_see_whole_turns_while_they_are_overwritten(tmp_path: Path) -> None:
    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", readers=4)

        def version(number: int) -> tuple[bytes, ...]:
            return tuple(message(f"version {number} item {item}") for item in range(number % 5 + 1))

        await store.save(turn("r1", input=version(0), output=version(0)))
        done = asyncio.Event()

        async def overwrite() -> None:
            for number in range(200):
                await store.save(turn("r1", input=version(number), output=version(number)))
            done.set()

        async def look() -> int:
            looks = 0
            while not done.is_set():
                (seen,) = await store.chain("r1")
                assert seen.input == seen.output
                assert seen.input == version(int(seen.input[0].split(b"version ")[1].split(b" ")[0]))
                looks += 1
            return looks

        _, *looks = await asyncio.gather(overwrite(), *(look() for _ in range(8)))
        assert min(looks) > 0
        await store.aclose()

    asyncio.run(ask())
