"""Citations: links and addresses in an answer that a search had found, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.assemble.cite import _MAX_CITATIONS, find_citations

A, B, WIKI = "https://a.example/page", "https://b.example/", "https://w.example/Otter_(animal)"
SOURCES = {A: "Page A", B: "", WIKI: "Otter"}


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        (f"See [the page]({A}).", [(f"[the page]({A})", A, "Page A")]),
        (f"See [the page](<{A}>).", [(f"[the page](<{A}>)", A, "Page A")]),
        (f"See [b]({B}) and {A}, too.", [(f"[b]({B})", B, "b"), (A, A, "Page A")]),
        (f"Bare: {A}.", [(A, A, "Page A")]),
        (f"**{A}**", [(A, A, "Page A")]),
        (f"In brackets ({WIKI}), and [so]({WIKI}).", [(WIKI, WIKI, "Otter"), (f"[so]({WIKI})", WIKI, "Otter")]),
        ("With another end: https://b.example#top", [("https://b.example#top", B, "https://b.example/")]),
        (f"([a]({A}))", [(f"[a]({A})", A, "Page A")]),
        ("See [somewhere](https://elsewhere.example/).", []),
        ("No address at all.", []),
        ("http:// and https:// alone", []),
        ("", []),
    ],
)
def test_pages_that_were_found_are_cited_where_they_are_named(text: str, cited: list[tuple[str, str, str]]) -> None:
    found = find_citations(text, SOURCES)
    told = [(text[one["start_index"] : one["end_index"]], one["url"], one["title"]) for one in found]
    assert told == cited
    assert all(one["type"] == "url_citation" for one in found)


def test_nothing_is_cited_where_nothing_was_found() -> None:
    assert find_citations(f"[a]({A})", {}) == []


def test_one_text_has_no_more_citations_than_it_may() -> None:
    assert len(find_citations(f"{A} " * (_MAX_CITATIONS + 50), SOURCES)) == _MAX_CITATIONS


pieces = st.sampled_from([A, B, WIKI, "[", "](", ")", "(", "<", ">", " ", ".", "x", "https://", "\n", "#", "_"])


@given(st.lists(pieces, max_size=30).map("".join))
def test_places_lie_in_the_text_in_order_and_name_what_was_found(text: str) -> None:
    end = 0
    for one in find_citations(text, SOURCES):
        assert end <= one["start_index"] < one["end_index"] <= len(text)
        end = one["end_index"]
        assert one["url"] in SOURCES


def test_a_hostile_text_takes_no_time_that_anybody_notices() -> None:
    for part in ("[", "[a](", "https://", "https://a.example/((((", "[x](https://a.example/"):
        find_citations(part * 20_000, SOURCES)
