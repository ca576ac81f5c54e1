"""Hosted `web_search`, run here: the model's call in, what it may read out.

In: a `ManagedCall` with `query` and `queries`, or `url` and `pattern`. Out: a `Ran` whose `sources` are the pages that
it was told of. A failure is a result like any other: the model reads why, and may go on without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from isthmus.bridge.types.managed import Managed, ManagedCall, Ran
from isthmus.errors import UpstreamFailed
from isthmus.ports import Behalf
from isthmus.ports.search import Found, Hit, Opener, Searcher
from isthmus.ports.tools import Tell, ToolRunner
from isthmus.protocol.json import JsonObject
from isthmus.tools.search.wishes import Offline, Wishes, read_wishes
from isthmus.tools.search.words import FROM_THE_WEB, tell_hits, tell_matches, tell_page

_NO_QUESTION: Final = "There is nothing to search for; say it as `query`."


class SearchTool:
    """One for the gateway: it remembers nothing of who asks."""

    kind: Literal["web_search"] = "web_search"

    def __init__(
        self,
        searcher: Searcher,
        opener: Opener,
        *,
        opens: bool = False,
        offline: Offline,
        prefers: bool = False,
        unheard: frozenset[str] = frozenset(),
    ) -> None:
        self._searcher = searcher
        self._opener = opener
        self._opens = opens
        self._offline: Offline = offline
        self._prefers = prefers
        self._unheard = unheard

    async def offer(
        self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject], owner: str
    ) -> Managed:
        return self.foresee(managed, tools, items)

    def foresee(self, managed: Managed, tools: Sequence[JsonObject], items: Sequence[JsonObject]) -> Managed:
        return msgspec.structs.replace(
            managed,
            search=self._searcher.name,
            pages=self._opens,
            offline=self._offline == "index",
            unheard=self._unheard,
            prefers=managed.prefers | {self.kind} if self._prefers else managed.prefers,
        )

    def runner(self, behalf: Behalf) -> ToolRunner:
        return self

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        tell("searching", {})
        wishes = read_wishes(call.tool, self._offline)
        given = call.arguments
        if url := given.get("url"):
            return await self._open(str(url), str(given.get("pattern") or ""), wishes)
        asked = [given.get("query"), *(given.get("queries") or ())]
        questions = list(dict.fromkeys(each.strip() for each in asked if isinstance(each, str) and each.strip()))
        if not questions:
            return Ran(_NO_QUESTION, failed=True)
        return await self._search(questions, wishes)

    async def aclose(self) -> None:
        await self._searcher.aclose()
        await self._opener.aclose()

    async def _search(self, questions: list[str], wishes: Wishes) -> Ran:
        ended = await asyncio.gather(*(self._ask(question, wishes) for question in questions))
        told: list[str] = []
        hits: dict[str, Hit] = {}
        for question, found in zip(questions, ended, strict=True):
            if isinstance(found, str):
                told.append(f"The search for `{question}` failed: {found}")
                continue
            new = [hit for hit in found.hits if hit.url not in hits]
            told.append(tell_hits(question, _numbered(new, len(hits) + 1), found.lost))
            hits |= {hit.url: hit for hit in new}
        failed = all(isinstance(found, str) for found in ended)
        return Ran(
            "\n\n".join([*([FROM_THE_WEB] if hits else []), *told]),
            failed=failed,
            sources=tuple({"url": hit.url, "title": hit.title} for hit in hits.values()),
            usage={"num_requests": len(questions)},
        )

    async def _ask(self, question: str, wishes: Wishes) -> Found | str:
        try:
            return await self._searcher.search(wishes.query(question))
        except UpstreamFailed as failure:
            return failure.message

    async def _open(self, url: str, pattern: str, wishes: Wishes) -> Ran:
        try:
            page = await self._opener.open(url, wishes.scope)
        except UpstreamFailed as failure:
            return Ran(failure.message, failed=True)
        told = tell_matches(page, "", pattern) if pattern else tell_page(page)
        return Ran(f"{FROM_THE_WEB}\n\n{told}", sources=({"url": page.url, "title": page.title or page.url},))


def _numbered(hits: list[Hit], first: int) -> list[tuple[str, Hit]]:
    return [(str(number), hit) for number, hit in enumerate(hits, first)]
