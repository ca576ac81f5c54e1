"""What servers taught us is kept by every store in the same way."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from every_store import every_store
from isthmus.bridge.types.plan import Lesson
from isthmus.errors import ConfigError
from isthmus.ports import Store
from isthmus.store.open import open_store, read_lessons


def lesson(value: str = "required", *, at: float = 1.0, model: str = "m", parameter: str = "tool_choice") -> Lesson:
    return Lesson("mine", model, parameter, value, at)


@every_store()
async def test_lessons_are_those_of_one_model_oldest_first(store: Store) -> None:
    for each in (lesson("function", at=3), lesson(at=2), lesson(at=1, model="other"), lesson("", parameter="p", at=4)):
        await store.learn(each)
    assert await store.lessons("mine", "m") == [lesson(at=2), lesson("function", at=3), lesson("", parameter="p", at=4)]
    assert await store.lessons("mine", "other") == [lesson(at=1, model="other")]
    assert await store.lessons("theirs", "m") == []


@every_store()
async def test_a_later_lesson_takes_the_place_of_the_same_one(store: Store) -> None:
    await store.learn(lesson(at=1))
    await store.learn(lesson(at=9))
    assert await store.lessons("mine", "m") == [lesson(at=9)]


@every_store()
async def test_old_lessons_are_not_told_and_go_with_the_next_one(store: Store) -> None:
    await store.learn(lesson(at=1))
    assert await store.lessons("mine", "m", since=1) == [lesson(at=1)]
    assert await store.lessons("mine", "m", since=1.5) == []
    await store.learn(lesson(at=5, model="other"), since=2)
    assert await store.lessons("mine", "m") == []


@every_store()
async def test_lessons_are_bounded_and_the_oldest_go_first(store: Store) -> None:
    for number in range(6):
        await store.learn(lesson(at=number, model=f"m{number}"), most=4)
    kept = [number for number in range(6) if await store.lessons("mine", f"m{number}")]
    assert kept == [2, 3, 4, 5]


@every_store()
async def test_a_model_with_an_impossible_name_is_simply_a_model(store: Store) -> None:
    await store.learn(lesson(model="\ud800"))
    await store.lessons("mine", "\ud800")


@every_store()
async def test_pruning_and_exports_leave_lessons_alone(store: Store) -> None:
    await store.learn(lesson())
    await store.prune(older_than=1e12, max_bytes=0)
    assert [line async for line in store.export()] == []
    assert await store.lessons("mine", "m") == [lesson()]
    assert (await store.stats()).responses == 0


def test_a_look_from_outside_makes_no_store_and_changes_none(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    assert read_lessons(f"sqlite:{path}", "mine", "m", since=0) == []
    assert read_lessons("memory:", "mine", "m", since=0) == []
    assert not path.exists()

    async def fill() -> None:
        store = open_store(f"sqlite:{path}")
        await store.learn(lesson(at=5))
        await store.aclose()

    asyncio.run(fill())
    assert read_lessons(f"sqlite:{path}", "mine", "m", since=0) == [lesson(at=5)]
    assert read_lessons(f"sqlite:{path}", "mine", "m", since=6) == []
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]


def test_a_look_at_an_older_store_finds_nothing_and_at_another_file_says_so(tmp_path: Path) -> None:
    older, other = tmp_path / "older.db", tmp_path / "other.db"
    with closing(sqlite3.connect(older)) as connection:
        connection.execute("CREATE TABLE responses (id TEXT)")
    assert read_lessons(f"sqlite:{older}", "mine", "m", since=0) == []
    other.write_bytes(b"no database" * 100)
    with pytest.raises(ConfigError, match="not a database"):
        read_lessons(f"sqlite:{other}", "mine", "m", since=0)
