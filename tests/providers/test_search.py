"""Every file of a search engine is sound, and the configuration knows each by its name."""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

import pytest

from isthmus.config.schema import Search
from isthmus.providers.search import DEMO, key_headers, load_search, place_of, search_names


def test_the_configuration_offers_every_engine_that_has_a_file() -> None:
    offered = set(get_args(get_type_hints(Search)["backend"]))
    assert offered == {"", DEMO, *search_names()}


@pytest.mark.parametrize("name", search_names())
def test_its_facts_have_a_source_and_a_day(name: str) -> None:
    facts = load_search(name)
    assert facts.sources
    assert all(source.startswith("https://") for source in facts.sources)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts.checked)
    assert facts.base_url.startswith("https://") or name == "searxng"
    assert bool(facts.key_env) == facts.needs_key
    assert "{query}" in facts.request.values()


def test_an_address_of_the_operators_own_takes_the_place_of_the_vendors() -> None:
    brave, searxng = load_search("brave"), load_search("searxng")
    assert place_of(brave) == "https://api.search.brave.com/res/v1/web/search"
    assert place_of(brave, "http://127.0.0.1:9/") == "http://127.0.0.1:9/res/v1/web/search"
    assert place_of(searxng, "http://here:8888/searxng/search") == "http://here:8888/searxng/search"


def test_the_key_stands_where_the_vendor_reads_it() -> None:
    assert key_headers(load_search("brave"), "k") == {"X-Subscription-Token": "k"}
    assert key_headers(load_search("tavily"), "k") == {"Authorization": "Bearer k"}
    assert key_headers(load_search("exa"), "") == {}
