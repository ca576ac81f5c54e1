from __future__ import annotations

import pytest

from isthmus.demo.words import MOST_READ, read_words, telling


@pytest.mark.parametrize(
    ("text", "things", "listed"),
    [
        ("What is the weather in Paris?", ["Paris"], []),
        ("Paris, London and Rome", ["Paris", "London", "Rome"], ["Paris", "London", "Rome"]),
        ("weather in San Francisco, CA", ["San Francisco", "CA"], []),
        ("weather in oslo and rome", ["oslo", "rome"], ["oslo", "rome"]),
        ('call it "the big one"', ["the big one"], []),
        ("just tides", ["tides"], []),
        ("Ada's book", ["Ada"], []),
        ("", [], []),
    ],
)
def test_names_and_lists_are_found(text: str, things: list[str], listed: list[str]) -> None:
    words = read_words(text)
    assert (list(words.things), list(words.listed)) == (things, listed)


def test_special_words_are_found_and_are_no_names() -> None:
    words = read_words("Ada (Ada@Example.org) read https://Example.org/A and a/b.txt on Friday for 2.5 or -3 hours")
    assert (words.dates, words.emails, words.urls) == (("Friday",), ("Ada@Example.org",), ("https://Example.org/A",))
    assert (words.files, words.numbers, words.things) == (("a/b.txt",), (2.5, -3), ("Ada",))


def test_only_the_beginning_is_read() -> None:
    assert len(read_words("x" * 10_000).text) == MOST_READ


def test_small_words_tell_nothing() -> None:
    assert telling("Please tell me about the Tides") == ["tides"]
