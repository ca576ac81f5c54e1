from __future__ import annotations

import pytest

from isthmus.demo.supply import Sort, Supply, sort_of, words_of
from isthmus.demo.words import read_words


@pytest.mark.parametrize("name", ["getUserName", "get_user-name", "get user.name"])
def test_a_name_is_read_word_by_word(name: str) -> None:
    assert words_of(name) == ["get", "user", "name"]


@pytest.mark.parametrize(
    ("name", "sort"),
    [("homepage_url", "link"), ("dueDate", "date"), ("file_path", "file"), ("query", "ask"), ("city", "thing")],
)
def test_a_field_is_known_by_its_name(name: str, sort: Sort) -> None:
    assert sort_of(name) == sort


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("url", "see https://example.org/x now", "https://example.org/x"),
        ("email", "write to ada@example.org", "ada@example.org"),
        ("to", "write to ada@example.org", "ada@example.org"),
        ("date", "on Friday", "Friday"),
        ("path", "open a/b.txt", "a/b.txt"),
        ("expression", "what is 2+3?", "2+3"),
        ("query", "search the web for cats", "cats"),
        ("city", "", "Paris"),
        ("x", "", ""),
    ],
)
def test_a_field_gets_what_its_name_asks_for(name: str, text: str, value: str) -> None:
    assert Supply(read_words(text)).string(name) == value


def test_things_and_numbers_are_handed_out_in_turn() -> None:
    supply = Supply(read_words("From Paris to Rome with 2 bags and 3 hats"), "said")
    assert [supply.string(name) for name in ("start_city", "end_city", "city")] == ["Paris", "Rome", "Rome"]
    assert [supply.number(lambda number: number > 2), supply.number(lambda _: True)] == [3, 2]
    assert supply.number(lambda _: True) is None
    assert supply.string("answer") == "said"


def test_an_option_is_taken_where_the_text_has_it_as_a_word() -> None:
    supply = Supply(read_words("I like redwood and blue"))
    assert supply.mentioned(["red", "blue", 3]) == "blue"
    assert supply.mentioned(["red"]) is None
