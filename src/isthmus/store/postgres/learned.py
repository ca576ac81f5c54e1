"""What servers taught us and said of themselves, in the database."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import StoredWord
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.pool import Pool
from isthmus.store.postgres.texts import name


class PostgresLearned:
    """`ports.Learned`, for the store to have."""

    pool: Pool

    async def learn(self, lesson: Lesson, *, since: float = 0.0, most: int = 1000) -> None:
        lesson = replace(lesson, model=name(lesson.model), value=name(lesson.value))
        await self.pool.write(partial(_keep_lesson, lesson=lesson, since=since, most=most))

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        return await self.pool.read(partial(load_lessons, provider=provider, model=name(model), since=since))

    async def hear(self, word: StoredWord, *, since: float = 0.0, most: int = 200) -> None:
        await self.pool.write(partial(_keep_word, word=word, since=since, most=most))

    async def words(self, *, since: float = 0.0) -> list[StoredWord]:
        return await self.pool.read(partial(load_words, since=since))


def load_lessons(connection: Connection, provider: str, model: str, since: float) -> list[Lesson]:
    rows = connection.execute(
        "SELECT provider, model, parameter, value, learned_at FROM lessons"
        " WHERE provider = %s AND model = %s AND learned_at >= %s ORDER BY learned_at",
        (provider, model, since),
    )
    return [Lesson(*row) for row in rows]


def load_words(connection: Connection, since: float) -> list[StoredWord]:
    rows = connection.execute(
        "SELECT provider, place, data, heard_at FROM words WHERE heard_at >= %s ORDER BY heard_at", (since,)
    )
    return [StoredWord(provider, place, bytes(data), heard_at) for provider, place, data, heard_at in rows]


def _keep_lesson(connection: Connection, lesson: Lesson, since: float, most: int) -> None:
    connection.execute(
        "INSERT INTO lessons (provider, model, parameter, value, learned_at) VALUES (%s, %s, %s, %s, %s)"
        " ON CONFLICT (provider, model, parameter, value) DO UPDATE SET learned_at = excluded.learned_at",
        (lesson.provider, lesson.model, lesson.parameter, lesson.value, lesson.learned_at),
    )
    connection.execute("DELETE FROM lessons WHERE learned_at < %s", (since,))
    connection.execute(
        "DELETE FROM lessons WHERE (provider, model, parameter, value) IN (SELECT provider, model, parameter, value"
        " FROM lessons ORDER BY learned_at DESC OFFSET %s)",
        (most,),
    )


def _keep_word(connection: Connection, word: StoredWord, since: float, most: int) -> None:
    connection.execute(
        "INSERT INTO words (provider, place, data, heard_at) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (provider, place) DO UPDATE SET data = excluded.data, heard_at = excluded.heard_at",
        (word.provider, word.place, word.data, word.heard_at),
    )
    connection.execute("DELETE FROM words WHERE heard_at < %s", (since,))
    connection.execute(
        "DELETE FROM words WHERE (provider, place) IN"
        " (SELECT provider, place FROM words ORDER BY heard_at DESC OFFSET %s)",
        (most,),
    )
