"""What is known of each search engine: how it is asked, and where its answers stand. Facts only, as data.

In: a name. Out: `SearchFacts` from `data/search/NAME.toml`. What is sent is written there with gaps, as in
`bridge.tools.template`; they are filled from these options:

    query · count · size (low, medium, high)
    allowed_domains · blocked_domains (lists) · allowed_domain (where there is exactly one)
    recency (day, week, month, year: the least that has all of it) · since (the day, as 2026-11-17)
    country · region · city · timezone
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal

import msgspec

from isthmus.errors import ConfigError
from isthmus.providers.schema import DATA
from isthmus.values.problems import Problem
from isthmus.values.read import read_struct

DEMO: Final = "demo"
"""It needs no file: it never leaves this process."""


class SearchAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where everything stands in an answer, as paths with dots."""

    results: str
    url: str
    title: str
    snippet: list[str]
    """Taken from the first of these that has words; a list of words is put together."""
    date: str = ""
    error: str = ""
    """The vendor's own words, where it refused."""


class SearchFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One search engine."""

    title: str
    checked: str
    sources: list[str]
    base_url: str = ""
    """Empty: wherever the operator runs it."""
    path: str
    method: Literal["GET", "POST"]
    """What is sent goes into the query of the address, or as JSON."""
    key_env: list[str] = []
    needs_key: bool = True
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    sites_in_query: bool = False
    """Whether domains are written into the question, as `site:example.org`."""
    max_query: int = 0
    """Characters of a question that it takes; 0: any number."""
    max_words: int = 0
    """Words of it; 0: any number."""
    max_count: int = 0
    """Results that it gives at most; 0: it does not say."""
    request: dict[str, Any]
    headers: dict[str, str] = {}
    answer: SearchAnswer
    hints: dict[str, str] = {}
    """Status → what to do about it, in words."""


@cache
def load_search(name: str) -> SearchFacts:
    """The facts of one of `search_names`."""
    text = (DATA / "search" / f"{name}.toml").read_text(encoding="utf-8")
    problems: list[Problem] = []
    facts = read_struct(SearchFacts, tomllib.loads(text), problems)
    if problems:
        raise ConfigError(f"the file of the search engine `{name}` is broken: {problems[0].text}")
    return facts


@cache
def search_names() -> tuple[str, ...]:
    """Every engine that has a file."""
    entries = (DATA / "search").iterdir()
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml")))


def place_of(facts: SearchFacts, url: str = "") -> str:
    """The address that is asked: the engine's own, or below one of the operator's."""
    base = (url or facts.base_url).rstrip("/")
    return base if base.endswith(facts.path) else base + facts.path


def hears_location(facts: SearchFacts) -> bool:
    """Whether it can be told where the person is who asks."""
    return any(f"{{{name}}}" in str({**facts.request, **facts.headers}) for name in ("country", "city"))


def key_headers(facts: SearchFacts, key: str) -> Mapping[str, str]:
    return {facts.key_header: facts.key_prefix + key} if key else {}
