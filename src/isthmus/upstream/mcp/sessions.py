"""Connections to MCP servers, kept for whoever used them last, and for nobody else.

In: a `Place` (a server, with the credentials that are shown there) and an owner. Out: an `McpSession` that is connected
and has listed its tools. Worth knowing: one is shared only where server, credentials and owner are the same, so that
nobody works in somebody else's session. Each rule has so many; for one more, one that nobody uses is closed, and those
that nobody used for a while are closed in any case.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from isthmus.addresses import is_public
from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.scrub import Secret
from isthmus.tools.mcp_session import Http, McpSession, log
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.guard import Lookup
from isthmus.upstream.wire import Wire

if TYPE_CHECKING:
    import httpx2

_CONNECT: Final = 10.0
_CONNECTIONS: Final = 32
"""To one server in one session: the stream of its news, and calls."""
_OPEN: Final = 86_400.0
"""Seconds that an answer may take; how long a call may, its caller knows."""
_LIBRARIES: Final = ("mcp", "httpx2", "httpcore2")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is, and what is shown there."""

    rule: str
    """Whose numbers count."""
    label: str
    """What the client calls it."""
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    anywhere: bool = False
    """Whether the operator named this very host; if not, it must be on the internet at large."""
    secrets: tuple[Secret, ...] = field(default=(), repr=False)
    """What else nobody may hear of."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of it there is, under one rule."""

    timeout: float = 60.0
    """Seconds to connect, shake hands and list the tools."""
    idle: float = 300.0
    max_sessions: int = 100
    max_tools: int = 200
    max_reply: int = 4_000_000


DEFAULT_BOUNDS: Final = Bounds()


class Busy(IsthmusError):
    """There is no room for one more connection."""


@dataclass(eq=False, slots=True)
class _Held:
    session: McpSession
    opening: asyncio.Task[None]
    users: int = 0
    used_at: float = 0.0


_Key = tuple[str, str, str, str]


class Sessions:
    def __init__(self, bounds: Mapping[str, Bounds], lookup: Lookup | None = None) -> None:
        self._bounds = bounds
        self._lookup = lookup
        self._held: dict[_Key, _Held] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        _hush()

    @property
    def open(self) -> int:
        return len(self._held)

    @asynccontextmanager
    async def use(self, place: Place, owner: str) -> AsyncIterator[McpSession]:
        """The connection; opened if there is none. Raises what kept it from being opened."""
        key = (place.rule, place.url, _digest(place.headers), owner)
        held = self._held.get(key)
        if held is not None and held.opening.done() and held.session.gone:
            self._close(key)
            held = None
        if held is None:
            self._make_room(place.rule)
            session = self._prepare(place)
            opening = asyncio.create_task(session.start(self._bounds[place.rule].timeout), name="open an MCP session")
            held = self._held[key] = _Held(session, opening)
            opening.add_done_callback(functools.partial(self._look_at, key, held))
            self._sweeping = self._sweeping or asyncio.create_task(self._sweep(), name="close unused MCP sessions")
        held.users += 1
        try:
            await asyncio.shield(held.opening)  # others may wait for it, too
            yield held.session
        finally:
            held.users -= 1
            held.used_at = asyncio.get_running_loop().time()

    def drop(self, session: McpSession) -> None:
        """It is of no use any more: the server does not know it."""
        for key, held in list(self._held.items()):
            if held.session is session:
                self._close(key, held)

    async def aclose(self) -> None:
        for key in list(self._held):
            self._close(key)
        sweeping, self._sweeping = self._sweeping, None
        if sweeping is not None:
            sweeping.cancel()
            await asyncio.wait({sweeping, *self._leaving})

    def _look_at(self, key: _Key, held: _Held, opening: asyncio.Task[None]) -> None:
        """One that could not be opened is not kept, whether somebody still waits for it or not."""
        if opening.cancelled() or opening.exception() is not None:
            self._close(key, held)

    def _make_room(self, rule: str) -> None:
        most = self._bounds[rule].max_sessions
        ours = [(key, held) for key, held in self._held.items() if key[0] == rule]
        if len(ours) < most:
            return
        free = [(held.used_at, key) for key, held in ours if not held.users]
        if not free:
            raise Busy(f"all {most} connections of `mcp.{rule}` are in use (`max_sessions`); try again later")
        self._close(min(free)[1])

    def _prepare(self, place: Place) -> McpSession:
        bounds = self._bounds[place.rule]
        endpoint = Endpoint(
            provider=place.rule,
            called=f"the MCP server `{place.label}`",
            url=place.url,
            headers=place.headers,
            trust_env=False,  # what was looked at must be what is connected to
            max_connections=_CONNECTIONS,
            patience=Patience(connect=min(bounds.timeout, _CONNECT), first_byte=_OPEN, idle=_OPEN),
            allows=None if place.anywhere else is_public,
            lookup=self._lookup,
        )
        target = _over_wire(endpoint, place, bounds.max_reply)
        return McpSession(target, place.label, max_tools=bounds.max_tools, max_list=bounds.max_reply)

    def _close(self, key: _Key, expected: _Held | None = None) -> None:
        held = self._held.get(key)
        if held is None or (expected is not None and held is not expected):
            return
        del self._held[key]
        leaving = asyncio.create_task(_leave(held), name="close an MCP session")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _sweep(self) -> None:
        """Look whether somebody is gone, as often as the most impatient rule wants."""
        while True:
            await asyncio.sleep(min(bounds.idle for bounds in self._bounds.values()) / 4)
            now = asyncio.get_running_loop().time()
            for key, held in list(self._held.items()):
                if not held.users and now - held.used_at >= self._bounds[key[0]].idle:
                    tell(log, "debug", "mcp.session.idle", name=key[0])
                    self._close(key, held)


async def _leave(held: _Held) -> None:
    if not held.opening.done():
        held.opening.cancel()
        await asyncio.wait({held.opening})
    await held.session.aclose()


def _over_wire(endpoint: Endpoint, place: Place, max_reply: int) -> Http:
    def way(headers: Mapping[str, str]) -> httpx2.AsyncClient:
        import httpx2

        from isthmus.upstream.mcp.over_wire import OverWire

        transport = OverWire(Wire(endpoint, place.secrets), max_reply)
        return httpx2.AsyncClient(headers=dict(headers), timeout=None, trust_env=False, transport=transport)

    return Http(place.url, place.headers, way, max_reply)


def _digest(headers: Mapping[str, str]) -> str:
    told = "\0".join(f"{name.lower()}\0{value}" for name, value in sorted(headers.items()))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _hush() -> None:
    """The libraries tell of addresses and of what servers say, which may hold anything: what matters we tell."""
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
