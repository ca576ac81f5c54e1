"""Search as the operator has it: one engine, the house's own domains and location, what was found before.

In: a `Query`. Out: hits within the domains of the query *and* of the house, no more and no longer than allowed. The
same question within a while is answered from memory; one that may not leave is answered from there or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from isthmus.errors import UpstreamFailed
from isthmus.log import tell
from isthmus.ports.search import NOWHERE, Found, Hit, Location, Query, Scope
from isthmus.tools.search.domains import is_within
from isthmus.upstream.search.kept import Kept

log: Final = logging.getLogger("isthmus.search")

MAX_QUESTION: Final = 2_000
"""Characters of a question; a longer one is cut."""
_SHARE: Final = {"low": 4, "medium": 2, "high": 1}
"""By how much the words of a hit are shortened."""


class Asks(Protocol):
    """A search engine, bare."""

    @property
    def name(self) -> str: ...

    async def ask(self, query: Query, count: int) -> Found: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SearchRules:
    """What the operator says of every search: see `[search]` in the configuration."""

    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    location: Location = field(default=NOWHERE)
    max_results: int = 10
    max_snippet: int = 1_000
    timeout: float = 15.0
    cache: int = 20_000_000
    keep: float = 900.0


class WebSearch:
    def __init__(self, engine: Asks, rules: SearchRules, now: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._rules = rules
        self._kept: Kept[Found] = Kept(rules.cache, rules.keep, _size, now)

    @property
    def name(self) -> str:
        return self._engine.name

    async def search(self, query: Query) -> Found:
        asked = self._narrowed(query)
        key = (asked.text, asked.scope.allowed, asked.scope.blocked, asked.recency, asked.location, asked.size)
        found = self._kept.get(key)
        if found is None:
            if query.scope.access == "kept":
                raise UpstreamFailed(
                    "this client lets nothing leave (`external_web_access: false`), and nothing that was found before "
                    "answers this question; to search, it must allow external web access"
                )
            found = await self._ask(asked)
            self._kept.put(key, found)
        hits = [hit for hit in found.hits if is_within(hit.url, query.scope) and is_within(hit.url, self._own)]
        return replace(found, hits=tuple(hits[: self._rules.max_results]))

    async def aclose(self) -> None:
        await self._engine.aclose()

    @property
    def _own(self) -> Scope:
        return Scope(self._rules.allowed, self._rules.blocked)

    def _narrowed(self, query: Query) -> Query:
        rules = self._rules
        scope = Scope(query.scope.allowed or rules.allowed, (*rules.blocked, *query.scope.blocked))
        location = query.location if query.location != NOWHERE else rules.location
        return replace(query, text=query.text[:MAX_QUESTION].strip(), scope=scope, location=location)

    async def _ask(self, query: Query) -> Found:
        try:
            async with asyncio.timeout(self._rules.timeout):
                found = await self._engine.ask(query, self._rules.max_results)
        except TimeoutError:
            words = f"the search engine `{self.name}` did not answer within {self._rules.timeout:g} s"
            failure = UpstreamFailed(words, code="upstream_timeout")
        except UpstreamFailed as failed:
            failure = failed
        else:
            tell(log, "info", "search.done", engine=self.name, hits=len(found.hits))
            most = max(self._rules.max_snippet // _SHARE[query.size], 1)
            return replace(found, hits=tuple(replace(hit, snippet=_shorten(hit.snippet, most)) for hit in found.hits))
        tell(log, "warning", "search.failed", engine=self.name, reason=failure.message)
        raise failure


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"


def _size(found: Found) -> int:
    return sum(_hit_size(hit) for hit in found.hits)


def _hit_size(hit: Hit) -> int:
    return 200 + 2 * (len(hit.url) + len(hit.title) + len(hit.snippet))
