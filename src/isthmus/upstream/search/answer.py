"""What a search engine answered, as hits: found where its facts say, cleaned, cut to size.

In: `SearchFacts` and the bytes. Out: `Hit`s, or `NoHits` in words, where it is no answer. An entry without an address
on the web is left out. A list that is missing is an empty one: some engines leave it out when they find nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from isthmus.ports.search import Hit
from isthmus.providers.search import SearchFacts

MAX_TITLE: Final = 300
"""Characters of a page's title."""
MAX_URL: Final = 2_000
"""Characters of an address; a longer one is no hit."""
_DATE: Final = 40
_MARKUP: Final = re.compile(r"</?(?:strong|b|em|i|mark|span|br|p)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)


class NoHits(ValueError):
    """An answer that cannot be read."""


def read_hits(facts: SearchFacts, data: bytes) -> tuple[Hit, ...]:
    try:
        answer = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoHits("its answer is no JSON") from error
    if not isinstance(answer, dict):
        raise NoHits("its answer is no JSON object")
    results = _at(answer, facts.answer.results)
    if results is None:
        return ()
    if not isinstance(results, list):
        raise NoHits(f"`{facts.answer.results}` in its answer is no list")
    return tuple(_read(facts, results))


def read_refusal(facts: SearchFacts, data: bytes) -> str:
    """The vendor's own words, where they stand as its facts say; else nothing."""
    try:
        answer = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return _words(_at(answer, facts.answer.error)) if facts.answer.error else ""


def _read(facts: SearchFacts, results: list[Any]) -> Iterator[Hit]:
    at = facts.answer
    seen: set[str] = set()
    for entry in results:
        url = _at(entry, at.url)
        if not isinstance(url, str) or not url.startswith(("http://", "https://")) or len(url) > MAX_URL:
            continue
        if url in seen or any(character.isspace() for character in url):
            continue
        seen.add(url)
        snippet = next((words for place in at.snippet if (words := _words(_at(entry, place)))), "")
        title = _words(_at(entry, at.title))[:MAX_TITLE] or url
        yield Hit(url, title, snippet, _words(_at(entry, at.date))[:_DATE] if at.date else "")


def _at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _words(value: Any) -> str:
    """Plain words on one line."""
    if isinstance(value, list):
        value = " … ".join(each for each in value if isinstance(each, str))
    if not isinstance(value, str):
        return ""
    return " ".join(html.unescape(_MARKUP.sub("", value)).split())
