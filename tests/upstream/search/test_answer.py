"""Hits are read from whatever an engine answers; what is none is left out."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.search import Hit
from isthmus.providers.search import load_search, search_names
from isthmus.upstream.search.answer import MAX_TITLE, NoHits, read_hits, read_refusal

SEARXNG = load_search("searxng")


def read(*results: Any) -> list[Hit]:
    return list(read_hits(SEARXNG, msgspec.json.encode({"results": results})))


@pytest.mark.parametrize(
    "entry",
    [
        {"title": "no address"},
        {"url": "javascript:alert(1)", "title": "x"},
        {"url": "file:///etc/passwd", "title": "x"},
        {"url": "https://a.example/ with spaces", "title": "x"},
        {"url": "https://a.example/" + "x" * 3000, "title": "x"},
        {"url": 3},
        "text",
        None,
    ],
)
def test_an_entry_without_an_address_on_the_web_is_no_hit(entry: Any) -> None:
    assert read(entry, {"url": "https://b.example", "title": "B"}) == [Hit("https://b.example", "B")]


def test_the_same_page_counts_once_and_one_without_a_title_is_called_by_its_address() -> None:
    twice = {"url": "https://a.example", "title": ""}
    assert read(twice, twice) == [Hit("https://a.example", "https://a.example")]


def test_words_are_plain_and_on_one_line() -> None:
    (hit,) = read(
        {"url": "https://a.example", "title": "<b>T</b>" + "t" * 900, "content": "a &lt;\n <strong>b</strong>"}
    )
    assert (hit.snippet, hit.title[:2], len(hit.title)) == ("a < b", "Tt", MAX_TITLE)


def test_exas_highlights_are_put_together() -> None:
    said = {"results": [{"url": "https://a.example", "title": "A", "highlights": ["one", "two"], "text": "all"}]}
    (hit,) = read_hits(load_search("exa"), msgspec.json.encode(said))
    assert hit.snippet == "one … two"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.sampled_from(search_names()), st.binary(max_size=60) | _JSON.map(msgspec.json.encode))
def test_nothing_that_comes_breaks_it(name: str, data: bytes) -> None:
    with suppress(NoHits):
        assert all(isinstance(hit, Hit) for hit in read_hits(load_search(name), data))
    assert isinstance(read_refusal(load_search(name), data), str)
