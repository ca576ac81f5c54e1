"""`[search]` → who searches, who opens pages, and what Codex asks."""

from __future__ import annotations

from dataclasses import dataclass

from isthmus.config.check_search import check_search
from isthmus.config.schema import Config, Search
from isthmus.config.secrets import configured_secrets
from isthmus.ports import Workers
from isthmus.ports.search import Location, Opener
from isthmus.providers.search import DEMO, hears_location, load_search
from isthmus.tools.search.hosted import SearchTool
from isthmus.tools.search.refs import Refs
from isthmus.tools.search.standalone import StandaloneSearch
from isthmus.upstream.search.engine import Engine
from isthmus.upstream.search.pages import ClosedPages, PageRules, Pages
from isthmus.upstream.search.search import Asks, SearchRules, WebSearch
from isthmus.values.problems import as_error


@dataclass(frozen=True, slots=True)
class Searching:
    """Both use one engine and one memory; the tool closes them."""

    tool: SearchTool
    standalone: StandaloneSearch


def search_tools(config: Config, workers: Workers) -> tuple[SearchTool, ...]:
    """What `[search]` runs, for whoever has no use for Codex's own search."""
    return (open_search(config, workers).tool,) if config.search.backend else ()


def open_search(config: Config, workers: Workers) -> Searching:
    """Where `[search]` names a backend. Nothing is connected to before somebody searches."""
    search = config.search
    errors = [problem for problem in check_search(search) if problem.severity == "error"]
    if errors:  # also where nobody has checked the configuration before: no key goes astray
        raise as_error(errors)
    where = search.location
    rules = SearchRules(
        allowed=tuple(search.allowed_domains),
        blocked=tuple(search.blocked_domains),
        location=Location(where.country.upper(), where.region, where.city, where.timezone),
        max_results=search.max_results,
        max_snippet=search.max_snippet,
        timeout=search.timeout,
        cache=search.cache,
        keep=search.keep,
    )
    hears = search.backend != DEMO and hears_location(load_search(search.backend))
    searcher, opener = WebSearch(_engine(config), rules), _opener(search, workers)
    # What never leaves this process is no access to the outside.
    offline = "index" if search.backend == DEMO else search.offline
    return Searching(
        SearchTool(
            searcher,
            opener,
            opens=search.open_pages,
            offline=offline,
            prefers=search.prefer == "here",
            unheard=frozenset() if hears else frozenset({"user_location"}),
        ),
        StandaloneSearch(searcher, opener, Refs(search.max_refs), offline=offline),
    )


def _engine(config: Config) -> Asks:
    search = config.search
    if search.backend == DEMO:
        from isthmus.demo.search import DemoSearch

        return DemoSearch()
    return Engine(
        search.backend,
        load_search(search.backend),
        url=search.url,
        key=search.api_key,
        timeout=search.timeout,
        at_once=search.at_once,
        max_answer=search.max_answer,
        more_secrets=configured_secrets(config),
    )


def _opener(search: Search, workers: Workers) -> Opener:
    if not search.open_pages:
        return ClosedPages()
    if search.backend == DEMO:
        from isthmus.demo.search import DemoPages

        return DemoPages()
    return Pages(
        workers,
        PageRules(
            ports=tuple(search.page_ports),
            allowed=tuple(search.allowed_domains),
            blocked=tuple(search.blocked_domains),
            max_bytes=search.max_page,
            max_text=search.max_page_text,
            max_redirects=search.max_redirects,
            timeout=search.page_timeout,
            at_once=search.at_once,
            cache=search.cache,
            keep=search.keep,
        ),
    )
