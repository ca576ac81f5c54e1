"""Waiting for what other processes do to the file: seen soon, missed never, and looked at once for all who wait."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.store.sqlite import changes as module
from isthmus.store.sqlite.changes import Changes
from isthmus.store.sqlite.medium import Medium
from isthmus.store.sqlite.store import SqliteStore
from own_time import clock, run_in_own_time, turns
from stored import turn

Question = Callable[[Changes, SqliteStore], Awaitable[None]]


def ask(folder: Path, question: Question) -> None:
    """With a clock that stands still, and looks that are made on the spot: only what the test does ends a wait."""

    async def main() -> None:
        store = SqliteStore(folder / "store.db")
        changes = Changes(store._medium)
        changes._reader = Inline(folder / "store.db")  # type: ignore[assignment]
        clock().stop_clock()
        try:
            await question(changes, store)
        finally:
            await changes.aclose()
            await store.aclose()

    run_in_own_time(main())


class Inline:
    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    async def run(self, query: Callable[[sqlite3.Connection], Any]) -> Any:
        return query(self._connection)

    async def aclose(self) -> None:
        self._connection.close()


async def until(task: asyncio.Future[Any]) -> Any:
    """Time goes by in small steps until it is done."""
    for _ in range(1000):
        await turns(5)
        if task.done():
            return task.result()
        clock().skip(module._PACE)
    raise AssertionError("it waits for ever")


def test_what_another_connection_commits_ends_the_wait(tmp_path: Path) -> None:
    async def question(changes: Changes, store: SqliteStore) -> None:
        mark = await changes.watch(0, None)
        for number in range(3):
            waiting = asyncio.ensure_future(changes.watch(3600, mark))
            await store.save(turn(f"r{number}"))
            found = await until(waiting)
            assert found != mark
            mark = found

    ask(tmp_path, question)


def test_what_changed_before_the_wait_began_is_not_missed(tmp_path: Path) -> None:
    async def question(changes: Changes, store: SqliteStore) -> None:
        mark = await changes.watch(0, None)
        await store.save(turn("r1"))
        clock().skip(module._PACE)
        assert await changes.watch(3600, mark) != mark

    ask(tmp_path, question)


def test_a_wait_in_vain_ends_in_time_with_the_same_mark(tmp_path: Path) -> None:
    async def question(changes: Changes, store: SqliteStore) -> None:
        mark = await changes.watch(0, None)
        waiting = asyncio.ensure_future(changes.watch(1.0, mark))
        began = clock().time()
        assert await until(waiting) == mark
        assert 1.0 <= clock().time() - began <= 1.0 + 3 * module._PACE

    ask(tmp_path, question)


def test_without_a_mark_it_waits_from_now_on(tmp_path: Path) -> None:
    async def question(changes: Changes, store: SqliteStore) -> None:
        await store.save(turn("r1"))
        mark = await changes.watch(0, None)
        waiting = asyncio.ensure_future(changes.watch(0.5, None))
        assert await until(waiting) == mark, "what was there before is no change"

    ask(tmp_path, question)


def test_a_read_is_no_change(tmp_path: Path) -> None:
    async def question(changes: Changes, store: SqliteStore) -> None:
        await store.save(turn("r1"))
        mark = await changes.watch(0, None)
        await store.load("r1")
        assert await until(asyncio.ensure_future(changes.watch(0.5, mark))) == mark

    ask(tmp_path, question)


def test_many_who_wait_share_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = module._data_version

    def counted(connection: sqlite3.Connection) -> int:
        looks.append(1)
        return look(connection)

    monkeypatch.setattr(module, "_data_version", counted)

    async def question(changes: Changes, store: SqliteStore) -> None:
        await asyncio.gather(*(changes.watch(0, None) for _ in range(100)))
        assert len(looks) == 1
        clock().skip(module._PACE)
        await asyncio.gather(*(changes.watch(0, 0) for _ in range(100)))
        assert len(looks) == 2

    ask(tmp_path, question)


def test_it_looks_through_a_connection_of_its_own(tmp_path: Path) -> None:
    """The number belongs to its connection: one that also writes would not see its own changes as such."""

    async def main() -> None:
        store = SqliteStore(tmp_path / "store.db")
        mark = await store.watch(0)
        await store.save(turn("r1"))
        clock().skip(module._PACE)
        assert await store.watch(3600, since=mark) != mark
        await store.aclose()

    run_in_own_time(main())


def test_it_can_be_closed_although_nobody_ever_waited(tmp_path: Path) -> None:
    async def main() -> None:
        await Changes(Medium(tmp_path / "store.db", "process", 5.0)).aclose()

    run_in_own_time(main())
