"""Budgets in the file: held by processes that race, found by indexes, and tidied a little at a time."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from every_store import Clock
from isthmus.ports.spending import SETTLED_KEPT, Hold, Use
from isthmus.store.sqlite.store import SqliteStore

DAY = "2026-11-17"
RACER = """
import asyncio, sys
from pathlib import Path
from isthmus.ports.spending import Hold, Use
from isthmus.store.sqlite.store import SqliteStore

async def race(path, name):
    store = SqliteStore(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()
    async def ask(number):
        id = f"{name}_{number}"
        if await store.hold(id, [Hold("team:t", "2026-11-17", 7, 1000)], seconds=600) is not None:
            return 0
        if number % 2:
            await store.settle(id, [Use("2026-11-17", "team:t", "k", "t", "p", "m", 1, nanos=7)])
        return 1
    print(sum(await asyncio.gather(*map(ask, range(120)))), flush=True)
    await store.aclose()

asyncio.run(race(*sys.argv[1:]))
"""


def test_two_processes_that_race_never_hold_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    held = sum(int(racer.communicate(timeout=120)[0]) for racer in racers)
    assert held == 1000 // 7

    async def ask() -> int:
        store = SqliteStore(path)
        total = await store.held("team:t") + sum(each.nanos for each in await store.uses(since=DAY, until=DAY))
        await store.aclose()
        return total

    assert asyncio.run(ask()) == held * 7 <= 1000


def test_what_is_over_goes_a_few_at_a_time(tmp_path: Path) -> None:
    clock = Clock()

    async def ask() -> list[int]:
        store = SqliteStore(tmp_path / "store.db", now=clock)
        for number in range(250):
            await store.hold(f"r{number}", [Hold("key:k", DAY, 0, 0)], seconds=1)
            await store.settle(f"s{number}", [])
        clock.at += SETTLED_KEPT
        counts = []
        for number in range(3):
            await store.hold(f"new{number}", [Hold("key:k", DAY, 0, 0)], seconds=1)
            await store.settle(f"old{number}", [])
            with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
                for table in ("holds", "settled"):
                    counts += connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        await store.aclose()
        return counts

    assert asyncio.run(ask()) == [151, 151, 52, 52, 3, 3]


def test_what_was_settled_is_there_after_a_restart(tmp_path: Path) -> None:
    async def ask() -> list[Use]:
        for _ in range(2):
            store = SqliteStore(tmp_path / "store.db")
            await store.settle("r1", [Use(DAY, "k", "k", "", "p", "m", 1, nanos=5)])
            await store.aclose()
        store = SqliteStore(tmp_path / "store.db")
        found = await store.uses(since=DAY, until=DAY)
        await store.aclose()
        return found

    assert [each.nanos for each in asyncio.run(ask())] == [5]
