"""Does `[search]` make sense? An engine that cannot be asked, or a page that cannot be opened, is told before anybody
tries.

In: `[search]`. Out: `Problem`s.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from isthmus.addresses import is_local
from isthmus.config.schema import Search
from isthmus.providers.search import DEMO, load_search
from isthmus.values.problems import Problem

EXTRACTOR: Final = "trafilatura"
"""What finds the text of a page."""


def check_search(search: Search) -> Iterator[Problem]:
    if not search.backend:
        fix = 'name a search engine, as `backend = "searxng"`'
        yield Problem(("search", "backend"), "is missing, so that nothing else in `[search]` counts", fix, "warning")
        return
    if search.backend != DEMO:
        yield from _check_engine(search)
    if search.open_pages and search.backend != DEMO and find_spec(EXTRACTOR) is None:
        words = f"needs `{EXTRACTOR}`, which is not installed"
        yield Problem(("search", "open_pages"), words, 'run `pip install "isthmus[pages]"`')
    country = search.location.country
    if country and not (len(country) == 2 and country.isascii() and country.isalpha()):
        yield Problem(("search", "location", "country"), f"is `{country}`", "write its two letters, as `DE`")


def _check_engine(search: Search) -> Iterator[Problem]:
    facts = load_search(search.backend)
    if not search.url and not facts.base_url:
        fix = 'say where it listens, as `url = "http://127.0.0.1:8888"`'
        yield Problem(("search", "url"), "is missing", fix)
    elif search.url:
        yield from _check_url(search)
    if facts.needs_key and not search.api_key and not search.url and not search.api_key_file:
        variables = " or ".join(f"`{name}`" for name in facts.key_env)
        yield Problem(("search", "api_key"), "is missing", f"set {variables} in the environment, or `api_key` here")
    if any(not character.isprintable() or not character.isascii() for character in search.api_key):
        yield Problem(("search", "api_key"), "has characters that a header cannot carry", "was it copied whole?")


def _check_url(search: Search) -> Iterator[Problem]:
    at, fix = ("search", "url"), "write it whole, for example `http://127.0.0.1:8888`"
    try:
        parts = urlsplit(search.url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(character.isspace() for character in search.url):
        yield Problem(at, "must be a URL with http or https", fix)
    elif parts.query or parts.fragment:
        yield Problem(at, "has a query or a fragment", "give the address alone; a key goes into `api_key`")
    elif search.api_key and parts.scheme == "http" and not is_local(search.url):
        yield Problem(at, "sends the key over plain HTTP", "use https where the server has it", "warning")
