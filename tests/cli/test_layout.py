"""Tables that fit: who gets how much, where a long word ends, and what becomes of rows that have no room."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from isthmus.cli.layout import fold_words, share, show_table
from isthmus.cli.terminal import lined_table

NEEDS = st.lists(st.integers(0, 30).flatmap(lambda low: st.tuples(st.just(low), st.integers(low, 90))), min_size=1)


def drawn(width: int, *rows: tuple[str, ...], columns: tuple[str, ...] = ("name", "address", "more")) -> list[str]:
    out = StringIO()
    table = lined_table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))
    show_table(Console(file=out, width=width), table, indent=0)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@given(NEEDS, st.integers(0, 200))
def test_everybody_gets_what_they_need_and_nobody_more_than_there_is(needs: list[tuple[int, int]], room: int) -> None:
    widths = share(needs, room)
    if widths is None:
        assert sum(least for least, _ in needs) > room
        return
    assert sum(widths) <= room
    assert all(least <= width <= liked for width, (least, liked) in zip(widths, needs, strict=True))
    if sum(liked for _, liked in needs) <= room:
        assert widths == [liked for _, liked in needs]


@pytest.mark.parametrize(
    ("word", "width", "lines"),
    [
        ("https://example.com/v1/chat", 20, ["https://example.com/", "v1/chat"]),
        ("degraded.web_search_preview", 20, ["degraded.", "web_search_preview"]),
        ("a-very-long-name-of-a-model", 20, ["a-very-long-name-of-", "a-model"]),
        ("short", 20, ["short"]),
        ("x" * 30, 20, ["x" * 30]),
    ],
)
def test_a_long_word_ends_where_it_has_a_sign(word: str, width: int, lines: list[str]) -> None:
    assert fold_words(Text(word), width).plain.split("\n") == lines


def test_cells_wrap_between_words_before_any_word_is_broken() -> None:
    lines = drawn(40, ("one", "some words of a sentence", "and more of them"))
    assert lines[2:] == ["one    some words of a     and more of", "       sentence            them"]


def test_rows_without_room_become_records() -> None:
    row = ("a-name-of-19-letter", "b-name-of-19-letter", "c-name-of-19-letter")
    assert drawn(40, row, row)[:5] == [
        "name",
        row[0],
        f"  address  {row[1]}",
        f"  more     {row[2]}",
        "",
    ]
