"""A page of the web, opened where the operator allows that (`search.open_pages`). Off by default: it is the one way out
whose end others choose.

In: an address from a model. Out: its words. What keeps it from reaching anything but public pages: only http and https,
at their usual ports and those that the configuration names, no user or password; the name's addresses are looked at
before anything is connected to, and what was looked at is what is connected to; every redirect is a new address, and
looked at again; nothing of ours goes along, no proxy takes part. Size, type, time and the number of redirects are
bounded.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urldefrag, urljoin

import msgspec

from isthmus.addresses import fault_of_visit, host_of, is_public
from isthmus.errors import UpstreamFailed, WorkNotDone
from isthmus.log import tell
from isthmus.ports import Workers
from isthmus.ports.search import ANYWHERE, Page, Scope
from isthmus.tools.search.domains import is_within
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.guard import Lookup
from isthmus.upstream.search.answer import MAX_TITLE, MAX_URL
from isthmus.upstream.search.extract import PAGE, Extracted, Extraction, can_read
from isthmus.upstream.search.kept import Kept
from isthmus.upstream.wire import Incoming, Wire

log: Final = logging.getLogger("isthmus.search")

USER_AGENT: Final = "isthmus (pages)"
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class PageRules:
    """What the operator says of pages: see `[search]` in the configuration."""

    ports: tuple[int, ...] = ()
    """Beside the usual ones, 80 of http and 443 of https."""
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    max_bytes: int = 5_000_000
    max_text: int = 100_000
    max_redirects: int = 5
    timeout: float = 20.0
    at_once: int = 16
    cache: int = 20_000_000
    keep: float = 900.0


class ClosedPages:
    """Where the operator has not allowed it."""

    async def open(self, url: str, scope: Scope = ANYWHERE) -> Page:
        raise UpstreamFailed(
            "pages are not opened here: the gateway's operator has not allowed it (`search.open_pages`); use what the "
            "search results say"
        )

    async def aclose(self) -> None: ...


class Pages:
    def __init__(
        self,
        workers: Workers,
        rules: PageRules,
        *,
        lookup: Lookup | None = None,
        allows: Callable[[str], bool] = is_public,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`allows`: which IP addresses may be connected to; another one than `is_public` only where a test needs it."""
        self._workers = workers
        self._rules = rules
        self._kept: Kept[Page] = Kept(rules.cache, rules.keep, lambda page: 2 * (len(page.text) + len(page.url)), now)
        patience = Patience(connect=rules.timeout, first_byte=rules.timeout, idle=rules.timeout)
        self._wire = Wire(
            Endpoint(
                provider="pages",
                called="the page",
                url="",
                headers={"user-agent": USER_AGENT, "accept": "text/html, text/plain;q=0.9, */*;q=0.5"},
                trust_env=False,
                max_connections=rules.at_once,
                patience=patience,
                allows=allows,
                lookup=lookup,
            )
        )

    async def open(self, url: str, scope: Scope = ANYWHERE) -> Page:
        address = urldefrag(url.strip()).url
        self._check(address, scope)
        found = self._kept.get(address)
        if found is None:
            if scope.access != "live":
                words = "this client does not let pages be opened anew, and this one was not opened before"
                raise UpstreamFailed(words)
            found = await self._load(address, scope)
            self._kept.put(address, found)
        else:
            self._check(found.url, scope)  # it may have been led elsewhere when somebody else asked
        return found

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _check(self, url: str, scope: Scope) -> None:
        if len(url) > MAX_URL:
            raise _refused(f"its address is longer than {MAX_URL} characters")
        fault = fault_of_visit(url, plain=True, ports=self._rules.ports)
        if fault is not None:
            raise _refused(f"its address {fault}")
        if not is_within(url, scope) or not is_within(url, Scope(self._rules.allowed, self._rules.blocked)):
            raise _refused("its domain is not among those that may be looked at")

    async def _load(self, url: str, scope: Scope) -> Page:
        try:
            async with asyncio.timeout(self._rules.timeout):
                page = await self._follow(url, scope)
        except TimeoutError:
            failure = _refused(f"it did not come within {self._rules.timeout:g} s", "upstream_timeout")
        except UpstreamFailed as failed:
            failure = failed
        else:
            tell(log, "info", "page.opened", host=host_of(page.url))
            return page
        tell(log, "warning", "page.failed", host=host_of(url), reason=failure.message)
        raise failure

    async def _follow(self, url: str, scope: Scope) -> Page:
        for _ in range(self._rules.max_redirects + 1):
            answer = await self._wire.send(None, method="GET", url=url)
            try:
                if answer.status not in _REDIRECTS:
                    return await self._read(answer, url)
                led = answer.headers.get("location", "")
            finally:
                answer.close()
            url = urldefrag(urljoin(url, led)).url
            self._check(url, scope)
        raise _refused(f"it leads on more than {self._rules.max_redirects} times")

    async def _read(self, answer: Incoming, url: str) -> Page:
        if not answer.ok:
            raise _refused(f"its server answered HTTP {answer.status}")
        if not can_read(answer.kind):
            raise _refused(f"it is `{answer.kind[:80]}`, which is no text")
        body = await answer.within(self._rules.max_bytes)
        if body is None:
            raise _refused(f"it is larger than {self._rules.max_bytes} bytes (`search.max_page`)")
        job = Extraction(body, answer.kind, _charset(answer), url, self._rules.max_text)
        try:
            done = await self._workers.run(PAGE, msgspec.msgpack.encode(job))
        except WorkNotDone as error:
            raise _refused("its words cannot be found within the limits of `[checks]`") from error
        found = msgspec.msgpack.decode(done, type=Extracted)
        if not found.text:
            raise _refused("it holds no words; a page that is made by scripts cannot be read")
        return Page(url, found.title[:MAX_TITLE], found.text, found.cut)


def _charset(answer: Incoming) -> str:
    said = _CHARSET.search(answer.headers.get("content-type", ""))
    return said[1] if said else ""


def _refused(words: str, code: str | None = None) -> UpstreamFailed:
    return UpstreamFailed(f"the page cannot be opened: {words}", code=code)
