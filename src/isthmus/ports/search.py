"""Who searches the web, and who opens a page of it.

A `Query` is a question with everything that narrows it; what came of it are `Hit`s. Whoever is asked holds the answers
against the query's domains, too: a filter that a vendor does not know, or gets wrong, still filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

Size = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class Location:
    """Where the person who asks is, roughly."""

    country: str = ""
    """Two letters."""
    region: str = ""
    city: str = ""
    timezone: str = ""


NOWHERE: Final = Location()


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be looked at."""

    allowed: tuple[str, ...] = ()
    """Domains, with all below them; none: any."""
    blocked: tuple[str, ...] = ()
    access: Literal["live", "index", "kept"] = "live"
    """`live`: searches and pages; `index`: searches, and of pages those that were opened before; `kept`: only what was
    found before, so that nothing leaves."""


ANYWHERE: Final = Scope()


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    scope: Scope = ANYWHERE
    recency: int | None = None
    """Days."""
    location: Location = NOWHERE
    size: Size = "medium"
    """How much is wanted."""


@dataclass(frozen=True, slots=True)
class Hit:
    url: str
    title: str
    snippet: str = ""
    date: str = ""
    """When it was published, as it was told."""


@dataclass(frozen=True, slots=True)
class Found:
    hits: tuple[Hit, ...]
    lost: tuple[str, ...] = ()
    """What of the query had no place in what the vendor was asked, in words."""


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    """Where it was found, after every redirect."""
    title: str
    text: str
    """Markdown, with its links."""
    cut: bool = False
    """Whether it is longer than what is kept of it."""


class Searcher(Protocol):
    """A search engine. A failure is `UpstreamFailed`, in words that a model may read."""

    @property
    def name(self) -> str: ...

    async def search(self, query: Query) -> Found: ...

    async def aclose(self) -> None: ...


class Opener(Protocol):
    """Opens pages; where that is not allowed, it says so. A failure is `UpstreamFailed`."""

    async def open(self, url: str, scope: Scope = ANYWHERE) -> Page: ...

    async def aclose(self) -> None: ...
