"""A search engine that never leaves this process: the same question always finds the same pages, which are its own.

In: a query. Out: hits on `demo.example`, or on the domains that the query allows. `DemoPages` opens them, and nothing
else: what they say is made from their address.
"""

from __future__ import annotations

import re
import zlib
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from isthmus.errors import UpstreamFailed
from isthmus.ports.search import ANYWHERE, Found, Hit, Page, Query, Scope

NAME: Final = "demo"
_OWN: Final = ("demo.example", "news.demo.example", "docs.demo.example")
_KINDS: Final = ("wiki", "news", "guide", "questions", "history")
_SAYS: Final = {
    "wiki": "What {words} is, in short: a page of the demo search, made from your question.",
    "news": "The latest about {words}. Nothing here has happened; the demo search never leaves this machine.",
    "guide": "How to get on with {words}, step by step. First read, then try, then read again.",
    "questions": "What people ask about {words}, and what others answered.",
    "history": "Where {words} comes from, and what was there before.",
}


class DemoSearch:
    name = NAME

    async def ask(self, query: Query, count: int) -> Found:
        words = " ".join(query.text.split())
        domains = [domain.partition("/")[0] for domain in query.scope.allowed] or list(_OWN)
        slug = quote(re.sub(r"\W+", "-", words.lower()).strip("-")[:80] or "nothing")
        hits = []
        for index, kind in enumerate(_KINDS[:count]):
            url = f"https://{domains[index % len(domains)]}/{kind}/{slug}"
            day = zlib.crc32(url.encode()) % 28 + 1
            hits.append(Hit(url, f"{words}: {kind}", _SAYS[kind].format(words=words), f"2026-10-{day:02}"))
        return Found(tuple(hits))

    async def aclose(self) -> None: ...


class DemoPages:
    """Opens what `DemoSearch` finds, with links from one page to the others."""

    async def open(self, url: str, scope: Scope = ANYWHERE) -> Page:
        parts = urlsplit(url)
        _, kind, slug = [*parts.path.split("/", 2), "", ""][:3]
        if parts.scheme != "https" or kind not in _KINDS or not slug or (parts.hostname or "") not in _OWN:
            raise UpstreamFailed("the demo search opens only pages that it has found itself, on `demo.example`")
        words = unquote(slug).replace("-", " ")
        others = [other for other in _KINDS if other != kind]
        lines = [
            f"# {words}: {kind}",
            "",
            _SAYS[kind].format(words=words),
            "",
            "More of it:",
            *(f"- [{words}: {other}](https://{parts.hostname}/{other}/{slug})" for other in others),
        ]
        return Page(url, f"{words}: {kind}", "\n".join(lines))

    async def aclose(self) -> None: ...
