"""The demo search: always the same, within its filters, and never out of this process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.demo.search import DemoPages, DemoSearch
from isthmus.errors import UpstreamFailed
from isthmus.ports.search import Query, Scope
from isthmus.tools.search.words import number_links
from own_time import run_in_own_time


async def test_the_same_question_finds_the_same_pages() -> None:
    first, second = [await DemoSearch().ask(Query(" sea  otters "), 10) for _ in range(2)]
    assert first == second
    assert first.hits[0].url == "https://demo.example/wiki/sea-otters"
    assert "sea otters" in first.hits[0].snippet
    assert len((await DemoSearch().ask(Query("otters"), 2)).hits) == 2


async def test_it_finds_pages_on_the_domains_that_are_allowed() -> None:
    found = await DemoSearch().ask(Query("otters", Scope(("a.example", "b.example"))), 3)
    assert [hit.url.split("/")[2] for hit in found.hits] == ["a.example", "b.example", "a.example"]


async def test_its_pages_open_and_lead_to_one_another() -> None:
    pages = DemoPages()
    (hit, *_) = (await DemoSearch().ask(Query("sea otters"), 1)).hits
    page = await pages.open(hit.url)
    assert page.title == "sea otters: wiki"
    _, links = number_links(page.text)
    assert len(links) == 4
    assert (await pages.open(links[0])).title == "sea otters: news"


@pytest.mark.parametrize(
    "url", ["https://otters.example/wiki/x", "http://demo.example/wiki/x", "https://demo.example/", "x"]
)
async def test_it_opens_nothing_else(url: str) -> None:
    with pytest.raises(UpstreamFailed, match="only pages that it has found itself"):
        await DemoPages().open(url)


@given(st.text(min_size=1, max_size=60))
def test_whatever_is_asked_has_an_address_that_opens(text: str) -> None:
    async def main() -> None:
        for hit in (await DemoSearch().ask(Query(text), 5)).hits:
            assert not any(character.isspace() for character in hit.url)
            assert (await DemoPages().open(hit.url)).text

    run_in_own_time(main())
