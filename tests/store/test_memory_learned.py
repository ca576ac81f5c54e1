"""Memory keeps what was learned for so long, and so much of it."""

from __future__ import annotations

import asyncio

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import StoredWord
from isthmus.store.memory import MemoryStore


def test_the_oldest_lessons_and_words_make_room() -> None:
    async def ask() -> None:
        store = MemoryStore()
        for at in (1.0, 2.0, 3.0):
            await store.learn(Lesson("p", "m", "tool_choice", str(at), at), most=2)
            await store.hear(StoredWord("p", str(at), b"", at), most=2)
        assert [lesson.learned_at for lesson in await store.lessons("p", "m")] == [2.0, 3.0]
        assert [word.heard_at for word in await store.words()] == [2.0, 3.0]
        await store.learn(Lesson("p", "m", "tool_choice", "late", 4.0), since=3.0)
        assert [lesson.learned_at for lesson in await store.lessons("p", "m")] == [3.0, 4.0]
        await store.aclose()
        assert (await store.lessons("p", "m"), await store.words()) == ([], [])

    asyncio.run(ask())
