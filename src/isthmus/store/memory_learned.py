"""What servers taught us and said of themselves, in memory: the most recent of it."""

from __future__ import annotations

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import StoredWord


class MemoryLearned:
    """`ports.Learned`, for the store to have."""

    def __init__(self) -> None:
        super().__init__()
        self._lessons: dict[tuple[str, ...], Lesson] = {}
        self._words: dict[tuple[str, str], StoredWord] = {}

    async def learn(self, lesson: Lesson, *, since: float = 0.0, most: int = 1000) -> None:
        self._lessons[lesson.provider, lesson.model, lesson.parameter, lesson.value] = lesson
        newest = sorted(self._lessons.items(), key=lambda entry: entry[1].learned_at)[-most:]
        self._lessons = {key: each for key, each in newest if each.learned_at >= since}

    async def hear(self, word: StoredWord, *, since: float = 0.0, most: int = 200) -> None:
        self._words[word.provider, word.place] = word
        newest = sorted(self._words.items(), key=lambda entry: entry[1].heard_at)[-most:]
        self._words = {key: each for key, each in newest if each.heard_at >= since}

    async def words(self, *, since: float = 0.0) -> list[StoredWord]:
        kept = (each for each in self._words.values() if each.heard_at >= since)
        return sorted(kept, key=lambda each: each.heard_at)

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        about = (each for each in self._lessons.values() if (each.provider, each.model) == (provider, model))
        return sorted((each for each in about if each.learned_at >= since), key=lambda each: each.learned_at)
