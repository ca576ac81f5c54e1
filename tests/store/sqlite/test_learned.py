"""What was learned is asked for by model and by age, the oldest first."""

from __future__ import annotations

import sqlite3

from isthmus.bridge.types.plan import Lesson
from isthmus.ports import StoredWord
from isthmus.store.sqlite.learned import load_lessons, load_words
from isthmus.store.sqlite.writes import keep_lesson, keep_word


def test_lessons_are_those_of_one_model_since_then(connection: sqlite3.Connection) -> None:
    told = [Lesson("p", "m", "tool_choice", kind, at) for kind, at in (("required", 3.0), ("function", 2.0))]
    for lesson in (*told, Lesson("p", "other", "tool_choice", "required", 9.0)):
        keep_lesson(connection, lesson, 0.0, 99)
    assert load_lessons(connection, "p", "m", 0.0) == sorted(told, key=lambda each: each.learned_at)
    assert load_lessons(connection, "p", "m", 2.5) == told[:1]
    assert load_lessons(connection, "q", "m", 0.0) == []


def test_words_are_those_since_then(connection: sqlite3.Connection) -> None:
    told = [StoredWord("p", "https://a", b"new", 3.0), StoredWord("p", "https://b", b"old", 2.0)]
    for word in told:
        keep_word(connection, word, 0.0, 99)
    assert load_words(connection, 0.0) == told[::-1]
    assert load_words(connection, 2.5) == told[:1]
