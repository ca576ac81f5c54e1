"""Codex's own search (`POST /v1/alpha/search`): the model's commands in, one text for the model out.

In: the request's body, as Codex 0.166 sends it. Out: `{"output", "encrypted_output", "results"}`. Worth knowing: Codex
turns every failure, be it a status or a body without `output`, into the one word "aborted", which tells neither the
model nor the user anything (seen with 0.166, 2026-11-16). So whatever goes wrong is a sentence in `output`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from isthmus.errors import UpstreamFailed
from isthmus.ports.search import Opener, Page, Searcher
from isthmus.protocol.json import JsonObject
from isthmus.tools.search.domains import is_within
from isthmus.tools.search.refs import Refs
from isthmus.tools.search.wishes import Offline, Wishes, read_domains, read_wishes
from isthmus.tools.search.words import FROM_THE_WEB, number_links, tell_hits, tell_lines, tell_matches

MAX_COMMANDS: Final = 16
"""Commands of one call that are carried out; of more the model is told that they were not."""
MAX_ID: Final = 200
"""Characters of a session's id that count."""
MAX_OUTPUT: Final = 200_000
"""Characters of one answer, however many tokens the client would take."""
_PER_TOKEN: Final = 4
_LENGTHS: Final = {"short": ("low", 4_000), "medium": ("medium", 12_000), "long": ("high", 40_000)}
_INSTEAD: Final = "search the web for it in place of that, with `search_query`"
_ABSENT: Final = {
    "image_query": f"Images cannot be searched for here; {_INSTEAD}.",
    "screenshot": "Screenshots of pages cannot be made here; `open` the page and read its text.",
    "finance": f"There are no prices of the market here; {_INSTEAD}.",
    "weather": f"There are no weather forecasts here; {_INSTEAD}.",
    "sports": f"There are no schedules or standings here; {_INSTEAD}.",
}
_NOBODY: Final = (
    "The gateway has no search engine: its operator must set `[search] backend` in its configuration. Go on without "
    "the web, and tell the user."
)


class StandaloneSearch:
    def __init__(
        self,
        searcher: Searcher | None,
        opener: Opener | None,
        refs: Refs,
        *,
        offline: Offline = "nothing",
        now: Callable[[], float] = time.time,
    ) -> None:
        self.searcher = searcher
        self.opener = opener
        self.refs = refs
        self.offline: Offline = offline
        self._now = now

    async def answer(self, owner: str, body: Any) -> JsonObject:
        """Never raises, but for cancellation."""
        given = body if isinstance(body, dict) else {}
        commands = list(_read_commands(given.get("commands")))
        if not commands:
            return said("There is no command in this call; use for example `search_query`, with a `q`.")
        session = str(given.get("id") or "")[:MAX_ID]
        call = _Call(self, owner, session, self.refs.begin(owner, session), given)
        told = await asyncio.gather(*(call.carry_out(*each) for each in commands[:MAX_COMMANDS]))
        if len(commands) > MAX_COMMANDS:
            told.append(f"Only the first {MAX_COMMANDS} of {len(commands)} commands were carried out.")
        head = [FROM_THE_WEB] if call.results or call.pages else []
        return said(_cut("\n\n".join([*head, *told]), given.get("max_output_tokens")), call.results)

    def tell_time(self, offset: Any) -> str:
        text = str(offset or "+00:00").strip().removeprefix("UTC")
        sign = -1 if text.startswith("-") else 1
        hours, _, minutes = text.lstrip("+-").partition(":")
        try:
            shift = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * sign
            there = datetime.fromtimestamp(self._now(), timezone(shift))
        except (ValueError, OverflowError):
            there = datetime.fromtimestamp(self._now(), UTC)
            return f"`{text[:20]}` is no offset as `+03:00`. In UTC it is {there:%A, %Y-%m-%d %H:%M:%S}."
        return f"It is {there:%A, %Y-%m-%d %H:%M:%S} at UTC{text or '+00:00'}."


def said(output: str, results: list[JsonObject] | None = None) -> JsonObject:
    """The answer that Codex reads."""
    return {"output": output, "encrypted_output": None, "results": results or []}


def _read_commands(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each with its kind, in the order in which they were said; `{"q": ""}` is the model's way to ask for nothing."""
    for kind, entries in value.items() if isinstance(value, dict) else ():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and not (kind.endswith("_query") and not str(entry.get("q") or "").strip()):
                yield kind, entry


@dataclass
class _Call:
    """One call: its commands share a number, and what they found is theirs to name."""

    house: StandaloneSearch
    owner: str
    session: str
    turn: int
    given: Mapping[str, Any]
    results: list[JsonObject] = field(default_factory=list)
    pages: int = 0
    hits: int = 0

    async def carry_out(self, kind: str, entry: Mapping[str, Any]) -> str:
        try:
            match kind:
                case "search_query":
                    return await self._search(entry)
                case "open":
                    return await self._open(self._address(entry), entry)
                case "click":
                    return await self._click(entry)
                case "find":
                    page = await self._page(self._address(entry))
                    return tell_matches(page, self._name_page(page), str(entry.get("pattern") or ""))
                case "time":
                    return self.house.tell_time(entry.get("utc_offset"))
        except UpstreamFailed as failure:
            return f"`{kind}` failed: {failure.message}"
        except _Unknown as unknown:
            return str(unknown)
        return _ABSENT.get(kind, f"`{kind[:50]}` is no command that is known here.")

    async def _search(self, entry: Mapping[str, Any]) -> str:
        if self.house.searcher is None:
            return _NOBODY
        question, wishes = str(entry["q"]).strip(), self._wishes()
        days = entry.get("recency")
        recency = days if isinstance(days, int) and not isinstance(days, bool) and days > 0 else None
        asked = wishes.query(question, recency=recency, domains=read_domains(entry.get("domains")))
        found = await self.house.searcher.search(asked)
        # A question's own domains narrow those of the settings; they never widen them.
        named = [(self._name_hit(hit.url), hit) for hit in found.hits if is_within(hit.url, wishes.scope)]
        self.results += [
            {"type": "text_result", "ref_id": name, "url": hit.url, "title": hit.title, "snippet": hit.snippet}
            for name, hit in named
        ]
        return tell_hits(question, named, found.lost)

    async def _open(self, url: str, entry: Mapping[str, Any]) -> str:
        page = await self._page(url)
        line = entry.get("lineno")
        first = line if isinstance(line, int) and not isinstance(line, bool) else 1
        return tell_lines(page, self._name_page(page), first, self._length()[1])

    async def _click(self, entry: Mapping[str, Any]) -> str:
        _, links = number_links((await self._page(self._address(entry))).text)
        number = entry.get("id")
        if not isinstance(number, int) or not 0 <= number < len(links):
            raise _Unknown(f"The page has no link `{number}`; it has {len(links)}, counted from 0.")
        return await self._open(links[number], {})

    async def _page(self, url: str) -> Page:
        if self.house.opener is None:
            raise _Unknown(_NOBODY)
        page = await self.house.opener.open(url, self._wishes().scope)
        self.pages += 1
        return page

    def _address(self, entry: Mapping[str, Any]) -> str:
        name = str(entry.get("ref_id") or "").strip()
        if "://" in name:
            return name
        found = self.house.refs.find(self.owner, self.session, name)
        if found is None:
            words = f"No page is known as `{name[:80]}` in this session; give its address (URL), or search again."
            raise _Unknown(words)
        return found

    def _name_hit(self, url: str) -> str:
        name = f"turn{self.turn}search{self.hits}"
        self.hits += 1
        self.house.refs.name(self.owner, self.session, name, url)
        return name

    def _name_page(self, page: Page) -> str:
        name = f"turn{self.turn}view{self.pages - 1}"
        self.house.refs.name(self.owner, self.session, name, page.url)
        return name

    def _wishes(self) -> Wishes:
        settings = self.given.get("settings")
        settings = settings if isinstance(settings, dict) else {}
        size = settings.get("search_context_size") or self._length()[0]
        return read_wishes({**settings, "search_context_size": size}, self.house.offline)

    def _length(self) -> tuple[str, int]:
        commands = self.given.get("commands")
        wanted = commands.get("response_length") if isinstance(commands, dict) else None
        return _LENGTHS.get(str(wanted), _LENGTHS["medium"])


class _Unknown(Exception):
    """Words for the model."""


def _cut(text: str, tokens: Any) -> str:
    wanted = tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else MAX_OUTPUT
    most = min(wanted * _PER_TOKEN, MAX_OUTPUT)
    return text if len(text) <= most else text[:most].rstrip() + "\n(The rest was left out: it is too long.)"
