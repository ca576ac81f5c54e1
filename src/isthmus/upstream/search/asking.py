"""A question as a search engine wants it: an address, headers, a body; from its facts, and nothing but these.

In: `SearchFacts`, a `Query`, how many results, the day. Out: an `Asking`, with what found no place in it. Domains that
have no field go into the question (`site:`), where the engine reads that; else they are only held against its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from isthmus.bridge.tools.template import fill_template
from isthmus.ports.search import NOWHERE, Query
from isthmus.providers.search import SearchFacts
from isthmus.tools.search.domains import bare_domains

_RANGES: Final = ((1, "day"), (7, "week"), (31, "month"), (366, "year"))
_LOCATION: Final = ("country", "region", "city", "timezone")


@dataclass(frozen=True, slots=True)
class Asking:
    query: str
    """Of the address; empty where the question is in the body."""
    headers: dict[str, str] = field(repr=False)
    body: bytes | None
    lost: tuple[str, ...]


def build_asking(facts: SearchFacts, query: Query, count: int, today: date) -> Asking:
    used: set[str] = set()
    options = _Options(facts, query, count, today, used)
    sent = fill_template(facts.request, options.read)
    headers = {name: _for_header(text) for name, text in fill_template(facts.headers, options.read).items()}
    lost = tuple(_lost(query, used, options))
    if facts.method == "GET":
        return Asking(urlencode(sent), headers, None, lost)
    return Asking("", headers, msgspec.json.encode(sent), lost)


@dataclass(frozen=True, slots=True)
class _Options:
    facts: SearchFacts
    query: Query
    count: int
    today: date
    used: set[str]

    def read(self, name: str) -> Any:
        query, scope = self.query, self.query.scope
        value: Any = None
        match name:
            case "query":
                value = self.question()[0]
            case "count":
                value = min(self.count, self.facts.max_count or self.count)
            case "size":
                value = query.size
            case "allowed_domains":
                value = list(bare_domains(scope.allowed)) or None
            case "blocked_domains":
                value = list(bare_domains(scope.blocked)) or None
            case "allowed_domain":
                domains = bare_domains(scope.allowed)
                value = domains[0] if len(domains) == 1 else None
            case "recency" if query.recency:
                value = next((word for days, word in _RANGES if query.recency <= days), None)
            case "since" if query.recency:
                value = (self.today - timedelta(days=min(query.recency, 36_500))).isoformat()
            case "country" | "region" | "city" | "timezone":
                value = getattr(query.location, name) or None
        if value is not None:
            self.used.add(name)
        return value

    def question(self) -> tuple[str, bool]:
        """What is asked, and whether all of it is."""
        facts, words = self.facts, self.query.text.split()
        sites = self._sites()
        if (facts.max_query and len(sites) > facts.max_query // 2) or (
            facts.max_words and len(sites.split()) > facts.max_words // 2
        ):
            sites = ""  # the question matters more: domains are held against the answer, too
        kept = words[: facts.max_words - len(sites.split())] if facts.max_words else words
        text = " ".join(kept)
        room = facts.max_query - len(sites) if facts.max_query else len(text)
        if len(text) > room:
            cut = text[:room]
            text = cut.rpartition(" ")[0] or cut
        return text + sites, text == " ".join(words)

    def _sites(self) -> str:
        if not self.facts.sites_in_query:
            return ""
        allowed = " OR ".join(f"site:{domain}" for domain in bare_domains(self.query.scope.allowed))
        blocked = "".join(f" -site:{domain}" for domain in bare_domains(self.query.scope.blocked))
        return (f" ({allowed})" if " OR " in allowed else f" {allowed}" if allowed else "") + blocked


def _lost(query: Query, used: set[str], options: _Options) -> list[str]:
    lost = []
    if not options.question()[1]:
        lost.append("the end of the question, which is too long for it")
    if query.recency and not used & {"recency", "since"}:
        lost.append("how recent the pages must be")
    if query.location != NOWHERE and not used.intersection(_LOCATION):
        lost.append("the location")
    return lost


def _for_header(text: str) -> str:
    """Names of cities are written in every script; a header is not."""
    plain = text.encode("ascii", "ignore").decode()
    return "".join(character for character in plain if character.isprintable()).strip()
