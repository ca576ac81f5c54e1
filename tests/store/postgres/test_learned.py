"""What servers taught is shared by all who have the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import StoredWord
from isthmus.store.postgres.store import PostgresStore

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_many_that_learn_at_once_keep_the_newest(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        lessons = [Lesson("main", "m", f"p{number}", "v", float(number)) for number in range(20)]
        await asyncio.gather(*((one, two)[at % 2].learn(lesson, most=15) for at, lesson in enumerate(lessons)))
        await one.learn(lessons[-1], most=15)
        assert await two.lessons("main", "m") == lessons[5:]
        await one.hear(StoredWord("main", "http://one", b"{}", 1.0))
        await two.hear(StoredWord("main", "http://one", b"[]", 2.0))
        assert [word.data for word in await one.words()] == [b"[]"]

    asked(ask)


def test_a_model_with_an_endless_name_can_be_learned_about(asked: Asked) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.learn(Lesson("main", "m" * 9000, "p", "v", 1.0))
        assert len(await store.lessons("main", "m" * 9000)) == 1
        assert await store.lessons("main", "m" * 9001) == []

    asked(ask)
