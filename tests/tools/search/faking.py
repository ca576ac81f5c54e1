"""A search engine and pages for tests of what stands above them."""

from __future__ import annotations

from isthmus.errors import UpstreamFailed
from isthmus.ports.search import ANYWHERE, Found, Hit, Page, Query, Scope


class FakeSearcher:
    """Finds what it is told to; a question with `fail` in it fails."""

    name = "fake"

    def __init__(self, *hits: Hit, lost: tuple[str, ...] = ()) -> None:
        self.asked: list[Query] = []
        self.closed = False
        self._hits = hits
        self._lost = lost

    async def search(self, query: Query) -> Found:
        self.asked.append(query)
        if "fail" in query.text:
            raise UpstreamFailed("the search engine `fake` refused with HTTP 500")
        if "bug" in query.text:
            raise RuntimeError("a bug of ours")
        return Found(self._hits, self._lost)

    async def aclose(self) -> None:
        self.closed = True


class FakePages:
    def __init__(self, **pages: str) -> None:
        """Host → text."""
        self.opened: list[tuple[str, Scope]] = []
        self.closed = False
        self._pages = {f"https://{host}.example": text for host, text in pages.items()}

    async def open(self, url: str, scope: Scope = ANYWHERE) -> Page:
        self.opened.append((url, scope))
        if url not in self._pages:
            raise UpstreamFailed("the page cannot be opened: its server answered HTTP 404")
        return Page(url, url.removeprefix("https://").title(), self._pages[url])

    async def aclose(self) -> None:
        self.closed = True
