"""What is sent to a search engine, from its facts: laws that hold for every engine and every question."""

from __future__ import annotations

from datetime import date
from urllib.parse import parse_qs

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports.search import Location, Query, Scope
from isthmus.providers.search import load_search, search_names
from isthmus.upstream.search.asking import build_asking

TODAY = date(2026, 11, 17)
DOMAIN = st.from_regex(r"[a-z]{1,12}\.(example|test)", fullmatch=True)


@given(
    st.sampled_from(search_names()),
    st.text(min_size=1, max_size=3000),
    st.lists(DOMAIN, max_size=40),
    st.integers(1, 500),
)
def test_a_question_is_never_longer_than_the_engine_takes(name: str, text: str, domains: list[str], count: int) -> None:
    facts = load_search(name)
    asking = build_asking(facts, Query(text, Scope(tuple(domains))), count, TODAY)
    if asking.body is None:
        sent = {key: values[0] for key, values in parse_qs(asking.query, keep_blank_values=True).items()}
    else:
        sent = msgspec.json.decode(asking.body)
    field = next(key for key, value in facts.request.items() if value == "{query}")
    assert not facts.max_query or len(sent[field]) <= facts.max_query
    assert not facts.max_words or len(sent[field].split()) <= facts.max_words


@pytest.mark.parametrize(
    ("days", "word", "since"),
    [
        (1, "day", "2026-11-16"),
        (2, "week", "2026-11-15"),
        (7, "week", "2026-11-10"),
        (30, "month", "2026-10-18"),
        (300, "year", "2026-01-21"),
        (4000, None, "2015-12-05"),
    ],
)
def test_the_least_range_that_has_all_of_it_is_asked_for(days: int, word: str | None, since: str) -> None:
    query = Query("otters", recency=days)
    ranged = parse_qs(build_asking(load_search("searxng"), query, 5, TODAY).query)
    assert ranged.get("time_range") == (None if word is None else [word])
    dated = msgspec.json.decode(build_asking(load_search("tavily"), query, 5, TODAY).body or b"")
    assert dated["start_date"] == since


def test_a_range_that_no_word_has_is_told_as_lost() -> None:
    assert build_asking(load_search("searxng"), Query("otters", recency=4000), 5, TODAY).lost == (
        "how recent the pages must be",
    )


def test_several_domains_stand_in_one_question() -> None:
    query = Query("otters", Scope(("a.example", "https://b.example/docs"), ("c.example",)))
    sent = parse_qs(build_asking(load_search("searxng"), query, 5, TODAY).query)
    assert sent["q"] == ["otters (site:a.example OR site:b.example) -site:c.example"]


def test_a_city_in_another_script_breaks_no_header() -> None:
    asking = build_asking(load_search("brave"), Query("x", location=Location("JP", "", "東京\r\nX: y")), 5, TODAY)
    assert asking.headers == {"X-Loc-Country": "JP", "X-Loc-City": "X: y"}
