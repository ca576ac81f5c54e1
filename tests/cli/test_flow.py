"""Text broken between words as it comes: whatever its pieces, the lines are the same, and no word is lost or broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from isthmus.cli.flow import Flow


def flow(*pieces: str, width: int = 20) -> str:
    out: list[str] = []
    written = Flow(out.append, lambda: width)
    for piece in pieces:
        written.write(piece)
    written.end()
    return "".join(out)


def test_lines_end_between_words() -> None:
    assert flow("The quick brown fox jumps over the lazy dog.") == "The quick brown fox\njumps over the lazy\ndog."


def test_a_word_comes_out_as_soon_as_it_is_whole_and_not_before() -> None:
    out: list[str] = []
    written = Flow(out.append, lambda: 20)
    written.write("one tw")
    assert "".join(out) == "one"
    written.write("o ")
    assert "".join(out) == "one two"


def test_lines_and_spaces_of_the_text_itself_stay() -> None:
    assert flow("a\n\n  - b  c\n") == "a\n\n  - b  c\n"


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_is_not_broken_and_what_follows_is(fence: str) -> None:
    code = "print('a line that is longer than the terminal')"
    text = f"Look at this:\n{fence}python\n{code}\n    x = 1  #  two\n{fence}\nand then on we go again"
    assert flow(*text) == f"Look at this:\n{fence}python\n{code}\n    x = 1  #  two\n{fence}\nand then on we go\nagain"


def test_a_block_that_was_never_closed_ends_with_its_answer() -> None:
    out: list[str] = []
    written = Flow(out.append, lambda: 10)
    written.write("```\nopen")
    written.end()
    written.write("one two three")
    written.end()
    assert "".join(out).endswith("one two\nthree")


def test_wide_signs_count_for_two_and_may_stand_at_any_end() -> None:
    lines = flow("日本語の文章はどこでも改行できます。次").splitlines()
    assert [cell_len(line) for line in lines] == [20, 18]
    assert not any(line.startswith("。") for line in lines)


def test_a_picture_of_several_signs_is_one_word() -> None:
    family = "👩\u200d👩\u200d👧"
    assert flow(*f"{'x' * 18} {family}") == f"{'x' * 18}\n{family}"


def test_a_window_may_change_meanwhile() -> None:
    out: list[str] = []
    widths = [40]
    written = Flow(out.append, lambda: widths[0])
    written.write("one two three four ")
    widths[0] = 10
    written.write("five six")
    written.end()
    assert "".join(out).splitlines()[1:] == ["five six"]


@given(st.lists(st.text(st.sampled_from("ab \n`日🎉.-")), max_size=12), st.integers(min_value=4, max_value=30))
def test_pieces_change_nothing_and_nothing_is_lost(pieces: list[str], width: int) -> None:
    text = "".join(pieces)
    shown = flow(*pieces, width=width)
    assert shown == flow(text, width=width) == flow(*text, width=width)
    assert "".join(shown.split()) == "".join(text.split())


@given(st.lists(st.text(st.sampled_from("abc日"), min_size=1, max_size=4), max_size=40))
def test_no_line_is_wider_than_the_terminal(words: list[str]) -> None:
    assert all(cell_len(line) <= 12 for line in flow(" ".join(words), width=12).splitlines())
