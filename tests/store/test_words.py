"""What servers said of themselves, kept by every store, and looked at from outside."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from every_store import every_store
from isthmus.ports import Store, StoredWord
from isthmus.store.open import open_store, read_words


def word(provider: str = "mine", place: str = "here", *, at: float = 1.0, data: bytes = b'{"at":1}') -> StoredWord:
    return StoredWord(provider, place, data, at)


@every_store()
async def test_words_come_back_as_they_were_oldest_first(store: Store) -> None:
    assert await store.words() == []
    for each in (word(at=3), word("other", at=1, data=bytes(range(256))), word(place="there", at=2)):
        await store.hear(each)
    assert await store.words() == [word("other", at=1, data=bytes(range(256))), word(place="there", at=2), word(at=3)]


@every_store()
async def test_a_later_word_of_the_same_place_takes_its_place(store: Store) -> None:
    await store.hear(word(at=1, data=b"a"))
    await store.hear(word(at=2, data=b"b"))
    assert await store.words() == [word(at=2, data=b"b")]


@every_store()
async def test_old_words_are_not_told_and_go_with_the_next_one(store: Store) -> None:
    await store.hear(word(at=1))
    assert await store.words(since=1.5) == []
    await store.hear(word("other", at=9), since=5)
    assert await store.words() == [word("other", at=9)]


@every_store()
async def test_words_are_bounded_and_the_oldest_go_first(store: Store) -> None:
    for number in range(6):
        await store.hear(word(f"p{number}", at=number), most=4)
    assert [each.provider for each in await store.words()] == ["p2", "p3", "p4", "p5"]


@every_store()
async def test_pruning_and_exports_leave_words_alone(store: Store) -> None:
    await store.hear(word())
    await store.prune(older_than=1e12, max_bytes=0)
    assert [line async for line in store.export()] == []
    assert await store.words() == [word()]


def test_a_look_from_outside_makes_no_store_and_knows_older_ones(tmp_path: Path) -> None:
    path, older = tmp_path / "s.db", tmp_path / "older.db"
    assert read_words(f"sqlite:{path}", since=0) == read_words("memory:", since=0) == []
    assert not path.exists()

    async def fill() -> None:
        store = open_store(f"sqlite:{path}")
        await store.hear(word(at=5))
        await store.aclose()

    asyncio.run(fill())
    assert read_words(f"sqlite:{path}", since=0) == [word(at=5)]
    assert read_words(f"sqlite:{path}", since=6) == []
    with closing(sqlite3.connect(older)) as connection:
        connection.execute("CREATE TABLE responses (id TEXT)")
    assert read_words(f"sqlite:{older}", since=0) == []


def test_a_store_of_the_version_before_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    asyncio.run(open_store(f"sqlite:{path}").aclose())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE words")
        connection.execute("DELETE FROM isthmus_migrations WHERE name = '0008_words'")
        connection.commit()

    async def fill() -> list[StoredWord]:
        store = open_store(f"sqlite:{path}")
        await store.hear(word())
        kept = await store.words()
        await store.aclose()
        return kept

    assert asyncio.run(fill()) == [word()]
