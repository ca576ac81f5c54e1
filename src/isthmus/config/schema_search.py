"""What a configuration may say of search: who searches the web where clients leave that to the server."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from isthmus.config.section import Bytes, Count, Seconds, Section, Text, Timeout

Port = Annotated[int, Meta(ge=1, le=65535)]


class SearchLocation(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where people are who do not say it themselves; for engines that ask."""

    country: str = ""
    """Two letters, as `DE`."""
    region: str = ""
    """A state or region."""
    city: str = ""
    """A town."""
    timezone: str = ""
    """Its name, as `Europe/Berlin`."""


class Search(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who searches the web for models whose provider does not: `web_search` of every door, and Codex's own search."""

    backend: Literal["", "searxng", "brave", "tavily", "exa", "zhipu", "demo"] = ""
    """The search engine that is asked; `demo` answers from this process alone. Empty: nobody searches here."""
    url: str = ""
    """Where it listens; `searxng` needs it, the others have an address of their own. It may lead to this machine."""
    api_key: str = ""
    """Its key. The key in the environment that belongs to the engine (`BRAVE_API_KEY`, `TAVILY_API_KEY`,
    `EXA_API_KEY`, `ZHIPU_API_KEY`) is taken where none is given; it goes to the engine's own address alone."""
    api_key_file: str = ""
    """A file with that key. A relative path starts where that of `store.url` does."""
    prefer: Literal["native", "here"] = "native"
    """Who searches where the model's provider could: the provider itself, or this engine."""
    offline: Literal["nothing", "index"] = "nothing"
    """What is done for clients that want no external access (`external_web_access: false`; Codex's `cached`):
    nothing leaves, and the tool is left out; or the engine is asked for what is in its index, and no page is opened."""
    allowed_domains: list[Text] = []
    """Domains, with all below them, that results and pages may come from; none: any."""
    blocked_domains: list[Text] = []
    """Domains that they never come from."""
    location: SearchLocation = SearchLocation()
    timeout: Timeout = 15.0
    """How long one search may take."""
    max_results: Annotated[int, Meta(ge=1, le=50)] = 10
    """Results of one search that the model is told."""
    max_snippet: Count = 1_000
    """Characters of each result's words; half of it at the usual `search_context_size`, a quarter at `low`."""
    max_answer: Bytes = 2_000_000
    """Largest answer of the engine that is read."""
    at_once: Count = 16
    """Searches at the same time, and as many pages; more wait."""
    cache: Bytes = 20_000_000
    """Memory for results that were found before, and as much for pages; 0: none are kept."""
    keep: Seconds = 900.0
    """How long they are used in place of asking again; 0: not at all."""
    open_pages: bool = False
    """Whether models may have pages of the web opened. Needs `isthmus[pages]`. Nothing but public addresses is ever
    reached, whatever a page, a redirect or a name says."""
    page_ports: list[Port] = []
    """Ports that a page's address may name beside the usual ones (80 of http, 443 of https)."""
    page_timeout: Timeout = 20.0
    """How long a page may take to come, with all its redirects."""
    max_page: Bytes = 5_000_000
    """Largest page that is read."""
    max_page_text: Count = 100_000
    """Characters of a page's text that are kept and told."""
    max_redirects: Annotated[int, Meta(ge=0, le=20)] = 5
    """How often a page may lead on to another address."""
    max_refs: Bytes = 10_000_000
    """Memory for the names by which Codex's sessions speak of pages (`turn0search2`); the longest unused go first."""
