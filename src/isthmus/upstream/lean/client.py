"""One pool of connections to wherever an endpoint leads.

In: a request. Out: an `Answer` whose head is there. Worth knowing: a connection is kept for some seconds after its last
answer, the one that was used last is used first, and how many there are is decided before anybody comes here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from isthmus.upstream.clocks import Deadline
from isthmus.upstream.guard import Guard
from isthmus.upstream.lean.address import take_apart
from isthmus.upstream.lean.answer import Answer
from isthmus.upstream.lean.dial import Dialer
from isthmus.upstream.lean.head import Head
from isthmus.upstream.lean.line import Line
from isthmus.upstream.trouble import no_connection, unreachable

if TYPE_CHECKING:
    from isthmus.upstream.endpoint import Endpoint

LONGEST_IDLE: Final = 30.0
"""Seconds that a connection is kept without being used."""


class LeanClient:
    def __init__(self, endpoint: Endpoint, headers: Mapping[str, Mapping[str, str]]) -> None:
        """`headers`: of every request, for each of the endpoint's addresses."""
        self._endpoint = endpoint
        self._headers = headers
        self._own = {endpoint.url, *(other.url for other in endpoint.others.values())}
        self._heads: dict[tuple[str, str, str], Head] = {}
        """Of the endpoint's own addresses alone: there are few of them."""
        self._dialer = Dialer(Guard(endpoint.allows, endpoint.lookup), verify_tls=endpoint.verify_tls)
        self._idle: dict[tuple[str, str, int], list[Line]] = {}
        """Those that were used last come last."""
        self._lines: set[Line] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Event | None = None

    def spell(self, method: str, url: str, other: str) -> str:
        """The address as it will be asked for."""
        return self._head(method, url, other).address.url

    async def ask(
        self, method: str, url: str, data: bytes | None, other: str, more: Mapping[str, str] | None
    ) -> Answer:
        """`other`: under which name the headers are known; `more`: those of this request alone."""
        head = self._head(method, url, other)
        said = head.write(more, None if data is None else len(data))
        origin = head.address.origin
        line = self._take(origin) or await self._dial(origin)
        return await line.ask(said, data, bare=head.bare)

    async def aclose(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        self._idle.clear()
        if self._lines:
            self._emptied = asyncio.Event()
            for line in self._lines:
                line.close()
            await self._emptied.wait()
            self._emptied = None

    def _head(self, method: str, url: str, other: str) -> Head:
        head = self._heads.get((method, url, other))
        if head is None:
            head = Head(method, take_apart(url, self._endpoint.query), self._headers[other])
            if url in self._own:
                self._heads[method, url, other] = head
        return head

    def _take(self, origin: tuple[str, str, int]) -> Line | None:
        idle = self._idle.get(origin)
        while idle:
            line = idle.pop()
            if line.open:
                return line
        return None

    async def _dial(self, origin: tuple[str, str, int]) -> Line:
        scheme, host, port = origin
        patience = self._endpoint.patience.connect
        try:
            with Deadline(patience):
                line = await self._dialer.open(
                    lambda: Line(origin, self._keep, self._forget), scheme, host, port, patience
                )
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:  # the system's own has a number
                raise unreachable(f"no connection within {patience:g} s") from None
            raise no_connection(error, host, port) from None
        if line.open:
            self._lines.add(line)
        return line

    def _keep(self, line: Line) -> None:
        loop = asyncio.get_running_loop()
        line.since = loop.time()
        idle = self._idle.get(line.origin)
        if idle is None:
            self._idle[line.origin] = [line]
        else:
            idle.append(line)
        if self._sweeping is None:
            self._sweeping = loop.call_later(LONGEST_IDLE, self._sweep)

    def _sweep(self) -> None:
        """Those that nobody has used for long are closed."""
        loop = asyncio.get_running_loop()
        long_ago = loop.time() - LONGEST_IDLE
        self._sweeping = None
        for origin, idle in list(self._idle.items()):
            while idle and idle[0].since <= long_ago:
                idle.pop(0).drop()
            if not idle:
                del self._idle[origin]
        if self._idle:
            oldest = min(idle[0].since for idle in self._idle.values())
            self._sweeping = loop.call_at(oldest + LONGEST_IDLE, self._sweep)

    def _forget(self, line: Line) -> None:
        """It is closed."""
        idle = self._idle.get(line.origin, [])
        if line in idle:
            idle.remove(line)
        self._lines.discard(line)
        if not self._lines and self._emptied is not None:
            self._emptied.set()
