"""New requests as they end, for pages that are open. One look a second for all of them together, and none while there
is none: what is watched pays nothing for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.types import Receive, Send

from isthmus.errors import RequestRefused
from isthmus.gateway.bell import Bell
from isthmus.ports.traced import TraceSummary
from isthmus.ports.traces import TraceFilter, TraceStore
from isthmus.server.http import raw_headers
from isthmus.server.ui.render import GUARDED, render
from isthmus.server.ui.requests import read_filter

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

EVERY: Final = 1.0
"""Seconds between two looks."""
MOST_OPEN: Final = 50
"""Pages that are told at the same time."""
_MOST: Final = 50
"""New rows in one look; of more, the latest."""
_PING: Final = 15


class Live:
    def __init__(self, traces: TraceStore | None) -> None:
        self._traces = traces
        self._open = 0
        self._looking: asyncio.Task[None] | None = None
        self._latest = 0
        self._changed = Bell()

    async def serve(self, look: Look, receive: Receive, send: Send) -> None:
        traces = self._traces
        if traces is None or self._open >= MOST_OPEN:
            words = "traces are off" if traces is None else f"{MOST_OPEN} pages are open already"
            raise RequestRefused(f"nothing can be told live: {words}", code="server_is_overloaded")
        wanted, owner = read_filter(look.asked), look.visitor.owner
        self._open += 1
        try:
            seen = (await traces.stats(owner)).latest
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": raw_headers(
                        {**GUARDED, "content-type": "text/event-stream", "cache-control": "no-store"}
                    ),
                }
            )
            leaving = asyncio.create_task(_left(receive))
            try:
                while not leaving.done() and not look.gateway.draining and not look.gateway.retiring:
                    await self._wait(traces, leaving)
                    rows = await self._new(traces, owner, wanted, seen)
                    if rows:
                        seen = rows[-1].seq
                    await send({"type": "http.response.body", "body": self._frame(look, rows), "more_body": True})
            finally:
                leaving.cancel()
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._open -= 1

    async def _wait(self, traces: TraceStore, leaving: asyncio.Task[None]) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(traces), name="look for new requests")
        waiting = asyncio.create_task(self._changed.wait())
        await asyncio.wait({waiting, leaving}, timeout=_PING, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _look(self, traces: TraceStore) -> None:
        while self._open:
            latest = (await traces.stats()).latest
            if latest != self._latest:
                self._latest = latest
                self._changed.ring()
            await asyncio.sleep(EVERY)

    async def _new(
        self, traces: TraceStore, owner: str | None, wanted: TraceFilter, seen: int
    ) -> tuple[TraceSummary, ...]:
        page = await traces.list(owner, wanted, limit=_MOST, after=seen, order="asc")
        return page.traces

    def _frame(self, look: Look, rows: tuple[TraceSummary, ...]) -> bytes:
        if not rows:
            return b": nothing new\n\n"
        shown = render("_rows.html", traces=list(reversed(rows)), link=look.pages.link, fresh=True)
        return b"event: rows\n" + b"".join(b"data: " + line + b"\n" for line in shown.splitlines()) + b"\n"


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
