"""What a model reads of hits and pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.search import Hit, Page
from isthmus.tools.search.words import MAX_MATCHES, number_links, tell_hits, tell_lines, tell_matches, tell_page

TEXT = "\n".join(
    ["# Otters", "They live in [rivers](https://r.example/a) and", "eat [fish](https://f.example/b).", "End."]
)
PAGE = Page("https://otters.example", "Otters", TEXT)


def test_hits_have_names_titles_addresses_dates_and_words() -> None:
    hits = [("1", Hit("https://a.example", "A", "words", "2026-11-03")), ("2", Hit("https://b.example", "B"))]
    assert tell_hits("otters", hits, ("the location",)) == (
        "Results for `otters`:\n(The search engine could not be told the location.)\n\n"
        "[1] A\nhttps://a.example\n(2026-11-03) words\n\n[2] B\nhttps://b.example"
    )
    assert tell_hits("otters", []) == "Nothing was found for `otters`."


def test_a_page_is_told_whole_and_says_when_it_is_longer() -> None:
    assert tell_page(PAGE) == f"Otters\nhttps://otters.example\n\n{TEXT}"
    assert tell_page(Page("https://u.example", "", "x", cut=True)).endswith("(It is longer than this.)")


def test_links_are_named_by_number_in_their_order() -> None:
    text, links = number_links(TEXT)
    assert links == ["https://r.example/a", "https://f.example/b"]
    assert "in 【0†rivers】 and" in text
    assert "eat 【1†fish】." in text


def test_lines_can_be_read_from_any_one_on() -> None:
    assert tell_lines(PAGE, "turn0view0", 3, 1000) == (
        "[turn0view0] Otters\nhttps://otters.example\nLines 3 to 4 of 4.\n\nL3: eat 【1†fish】.\nL4: End."
    )
    first = tell_lines(PAGE, "p", -5, 10)
    assert "Lines 1 to 1 of 4; open it with `lineno` 2 to read on." in first
    assert "Lines 4 to 4 of 4." in tell_lines(PAGE, "p", 99, 1000)


def test_matches_are_found_whatever_their_case_with_their_line() -> None:
    told = tell_matches(PAGE, "p", "FISH")
    assert "`FISH` stands in one place." in told
    assert "L3: " in told
    assert "does not stand in it" in tell_matches(PAGE, "p", "cats")
    assert "does not stand in it" in tell_matches(PAGE, "", "  ")
    many = Page("https://m.example", "", "otter " * 100)
    told = tell_matches(many, "", "otter")
    assert f"stands in 100 places. The first {MAX_MATCHES}:" in told
    assert told.count("\n\nL1: ") == MAX_MATCHES


@given(st.text(max_size=300), st.integers(-5, 50), st.integers(1, 300), st.text(max_size=10))
def test_any_page_can_be_told(text: str, first: int, most: int, pattern: str) -> None:
    page = Page("https://u.example", "T", text)
    assert "Lines " in tell_lines(page, "p", first, most)
    assert tell_matches(page, "p", pattern)
