from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

from isthmus.ports import LOCAL
from isthmus.store.sqlite.reads import load_chain
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


def test_a_chain_of_two_hundred_turns_is_two_statements(tmp_path: Path) -> None:
    def count_statements(connection: sqlite3.Connection) -> tuple[int, int]:
        seen: list[str] = []
        connection.set_trace_callback(seen.append)
        turns = load_chain(connection, "r199", LOCAL, 1000)
        connection.set_trace_callback(None)
        # SQLite also traces the inner statements of virtual tables, as comments.
        return len(turns), len([statement for statement in seen if not statement.startswith("--")])

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        for number in range(200):
            await store.save(turn(f"r{number}", f"r{number - 1}" if number else None))
        assert await store.readers.run(count_statements) == (200, 2)
        await store.aclose()

    asyncio.run(ask())


def test_every_lookup_uses_an_index(tmp_path: Path) -> None:
    """A scan of a large table is a bug that no small test would feel."""
    scans: list[str] = []

    def explain(connection: sqlite3.Connection, statements: list[str]) -> None:
        for statement in statements:
            for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
                if detail.startswith("SCAN") and not detail.startswith(("SCAN json_each", "SCAN ancestry", "SCAN a")):
                    scans.append(f"{detail}: {statement}")

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", readers=1)
        seen: list[str] = []
        await store.save(turn("r1"))
        await store.writer.run(lambda connection: connection.set_trace_callback(seen.append))
        await store.readers.run(lambda connection: connection.set_trace_callback(seen.append))
        await store.save(turn("r2", "r1"))
        await store.save(turn("r2", "r1", status="in_progress"))
        await store.load("r2")
        await store.chain("r2")
        await store.items(["msg_r2", "in0_r2"])
        await store.list_input_items("r2")
        await store.expired()
        await store.claim("run:r2", holder="me", seconds=9)
        await store.signal("run:r2", "cancel")
        await store.renew("me", seconds=9)
        await store.save(turn("r2", "r1", status="in_progress"), holder="me")
        await store.release("run:r2", holder="me")
        await store.update_status("r2", "completed")
        await store.delete("r2")
        await store.writer.run(lambda connection: connection.set_trace_callback(None))
        await store.readers.run(lambda connection: connection.set_trace_callback(None))
        kinds = ("SELECT", "WITH", "UPDATE", "DELETE")
        statements = [text for text in map(str.strip, seen) if text.startswith(kinds)]
        assert len(statements) > 20
        await store.writer.run(lambda connection: explain(connection, statements))
        await store.aclose()

    asyncio.run(ask())
    assert scans == []
