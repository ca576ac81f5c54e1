"""One question, asked of every store. A new store joins by adding to `STORES` how it is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.ports import Store
from isthmus.store.memory import MemoryStore
from isthmus.store.postgres.address import Address
from isthmus.store.postgres.connect import Options
from isthmus.store.postgres.store import PostgresStore
from isthmus.store.sqlite.store import SqliteStore
from own_time import run_in_own_time
from postgres import database_of

Opener = Callable[..., Store]
Question = Callable[[Store], Awaitable[None]]
SharedQuestion = Callable[[Store, Store, "Clock"], Awaitable[None]]

STORES: dict[str, Opener] = {
    "memory": lambda folder, **limits: MemoryStore(**limits),
    "sqlite": lambda folder, **limits: SqliteStore(folder / "store.db", **limits),
    "sqlite-power": lambda folder, **limits: SqliteStore(folder / "store.db", durability="power", **limits),
    "postgres": lambda folder, **limits: PostgresStore(
        Options(Address(database_of(folder))),
        poll_seconds=60.0,  # that is for words that are lost, and wakes more often than it must
        **limits,
    ),
}


class Clock:
    """A wall clock that the test puts forward, or back."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def every_store(**limits: Any) -> Callable[[Question], Callable[[Opener, Path], None]]:
    """Turn an async question into a test for each store, opened with these limits and closed afterwards."""

    def wrap(question: Question) -> Callable[[Opener, Path], None]:
        @pytest.mark.parametrize("opener", STORES.values(), ids=STORES.keys())
        def test(opener: Opener, tmp_path: Path) -> None:
            async def ask() -> None:
                store = opener(tmp_path, **limits)
                try:
                    await question(store)
                finally:
                    await store.aclose()

            asyncio.run(ask())

        test.__name__, test.__doc__ = question.__name__, question.__doc__
        return test

    return wrap


def every_shared_store(question: SharedQuestion) -> Callable[[Opener, Path], None]:
    """The same, asked through two store objects on one medium, as two processes have them, and with a clock."""

    @pytest.mark.parametrize("opener", STORES.values(), ids=STORES.keys())
    def test(opener: Opener, tmp_path: Path) -> None:
        async def ask() -> None:
            clock = Clock()
            one = opener(tmp_path, now=clock)
            # Nothing outside a process shares its memory: there, both are the same object.
            two = one if isinstance(one, MemoryStore) else opener(tmp_path, now=clock)
            try:
                await question(one, two, clock)
            finally:
                await two.aclose()
                await one.aclose()

        run_in_own_time(ask())

    test.__name__, test.__doc__ = question.__name__, question.__doc__
    return test
