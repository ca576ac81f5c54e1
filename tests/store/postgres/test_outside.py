"""A look from outside makes nothing."""

from __future__ import annotations

import asyncio

import pytest

from isthmus.bridge.types.plan import Lesson
from isthmus.errors import ConfigError
from isthmus.ports import StoredWord
from isthmus.store.open import examine_store, read_lessons, read_words
from isthmus.store.postgres.connect import Options
from isthmus.store.postgres.store import PostgresStore
from postgres import empty_database, name_of, server
from stored import turn


def test_what_gateways_have_learned_is_read(options: Options) -> None:
    lesson, word = Lesson("main", "m", "p", "v", 5.0), StoredWord("main", "http://x", b"{}", 5.0)

    async def fill() -> None:
        store = PostgresStore(options)
        await store.learn(lesson)
        await store.hear(word)
        await store.save(turn("r"))
        await store.aclose()

    asyncio.run(fill())
    url = options.address.url
    assert read_lessons(url, "main", "m", since=0.0) == [lesson]
    assert read_words(url, since=0.0) == [word]
    assert read_words(url, since=6.0) == []
    assert examine_store(url).responses == 1


def test_where_there_is_no_store_none_is_made() -> None:
    url = empty_database()
    assert read_lessons(url, "main", "m", since=0.0) == []
    assert read_words(url, since=0.0) == []
    with pytest.raises(ConfigError, match=r"there is no store in the schema `isthmus`") as refused:
        examine_store(url)
    assert refused.value.param == "store.url"
    assert server().execute("SELECT 1 FROM pg_namespace WHERE nspname = 'isthmus'", name_of(url)) == []
