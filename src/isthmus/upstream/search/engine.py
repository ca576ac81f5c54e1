"""One search engine over the one wire: asked as its facts say, refused in words that hold no key.

In: a `Query`. Out: what it found. Worth knowing: it is the operator's own choice, so an address that the configuration
names may be anywhere, this machine included; the vendor's own must be on the internet. No redirect is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from isthmus.addresses import is_public
from isthmus.errors import UpstreamFailed
from isthmus.ports.search import Found, Hit, Query
from isthmus.providers.search import SearchFacts, key_headers, place_of
from isthmus.scrub import Secret
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.guard import Lookup
from isthmus.upstream.search.answer import NoHits, read_hits, read_refusal
from isthmus.upstream.search.asking import build_asking
from isthmus.upstream.wire import Incoming, Wire

USER_AGENT: Final = "isthmus (search)"
MAX_REFUSAL: Final = 4_096
"""Bytes of a refusal that are read."""
_SAID: Final = 300


class Engine:
    def __init__(
        self,
        name: str,
        facts: SearchFacts,
        *,
        url: str = "",
        key: str = "",
        timeout: float = 15.0,
        at_once: int = 16,
        max_answer: int = 2_000_000,
        more_secrets: Sequence[Secret] = (),
        lookup: Lookup | None = None,
        today: Callable[[], date] = date.today,
    ) -> None:
        self.name = name
        self._facts = facts
        self._max_answer = max_answer
        self._today = today
        self._place = place_of(facts, url)
        endpoint = Endpoint(
            provider=name,
            called=f"the search engine `{name}`",
            url=self._place,
            headers={"user-agent": USER_AGENT, "accept": "application/json", **key_headers(facts, key)},
            max_connections=at_once,
            patience=Patience(connect=timeout, first_byte=timeout, idle=timeout),
            allows=None if url else is_public,
            lookup=lookup,
        )
        self._wire = Wire(endpoint, more_secrets)

    async def ask(self, query: Query, count: int) -> Found:
        """What it finds, unfiltered. Raises `UpstreamFailed`."""
        asking = build_asking(self._facts, query, count, self._today())
        url = f"{self._place}?{asking.query}" if asking.query else self._place
        answer = await self._wire.send(asking.body, method=self._facts.method, url=url, headers=asking.headers)
        try:
            if not answer.ok:
                raise await self._refused(answer)
            data = await answer.within(self._max_answer)
        finally:
            answer.close()
        if data is None:
            raise self._wire.failed(f"sent more than {self._max_answer} bytes (`search.max_answer`)")
        try:
            return Found(tuple(map(self._clean, read_hits(self._facts, data))), asking.lost)
        except NoHits as error:
            failure = self._wire.failed(f"cannot be understood: {error}")
        raise failure

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _clean(self, hit: Hit) -> Hit:
        """Without our own key, whoever repeats it there: models and traces get what is found."""
        scrub = self._wire.scrubber.text
        return replace(hit, url=scrub(hit.url), title=scrub(hit.title), snippet=scrub(hit.snippet))

    async def _refused(self, answer: Incoming) -> UpstreamFailed:
        said = read_refusal(self._facts, await answer.beginning(MAX_REFUSAL))[:_SAID]
        hint = self._facts.hints.get(str(answer.status)) or _HINTS.get(answer.status, "")
        words = f"refused with HTTP {answer.status}" + (f": {said}" if said else "") + (f"; {hint}" if hint else "")
        return self._wire.failed(words)


_HINTS: Final = {
    401: "is `search.api_key` right?",
    402: "its account has no credit left",
    403: "is `search.api_key` right, and may it search?",
    429: "it is asked too often, or its quota is used up",
}
