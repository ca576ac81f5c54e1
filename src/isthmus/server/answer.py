"""What every answer says: which request it was, how long it took, what browsers ask for; and how it goes out.

In: ASGI messages, or a whole answer, which a connection of ours writes at once. Worth knowing: the exchange learns its
status here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable

from starlette.types import Message, Send

from isthmus.server.cycle import Cycle
from isthmus.server.exchange import Exchange
from isthmus.server.http import RawHeaders, send_in_two
from isthmus.server.leaving import Leaving


class Answer:
    """`send`, with all of that, and a memory of its status."""

    __slots__ = ("_before", "_cycle", "_exchange", "_send", "more")

    def __init__(self, send: Send, exchange: Exchange, cycle: Leaving | None = None, before: str = "") -> None:
        self._send = send
        self._before = before
        """What stands before the types of messages where a handshake is answered."""
        self._exchange = exchange
        self._cycle = cycle if isinstance(cycle, Cycle) else None
        self.more: RawHeaders = []

    def __call__(self, message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            self._tell(message["status"], message["headers"])
        if self._before and message["type"].startswith("http."):
            message["type"] = self._before + message["type"]
        return self._send(message)

    def whole(self, status: int, headers: RawHeaders, body: bytes) -> Awaitable[None]:
        """All of it. `headers` are taken over, and have its length."""
        if self._cycle is None:
            return send_in_two(self, status, headers, body)
        self._tell(status, headers)
        return self._cycle.answer(status, headers, body)

    def _tell(self, status: int, headers: RawHeaders) -> None:
        exchange = self._exchange
        exchange.status = status
        id = exchange.id.encode()
        limited = exchange.anthropic and any(name.startswith(b"x-ratelimit-") for name, _ in headers)
        theirs = _as_anthropic(headers) if limited else ()
        headers.append((b"x-request-id", id))
        headers.append((b"openai-processing-ms", b"%d" % exchange.milliseconds))
        headers += self.more
        if exchange.client_id:
            headers.append((b"x-client-request-id", exchange.client_id.encode()))
        if exchange.anthropic:
            headers.append((b"request-id", id))
            headers += theirs


def _as_anthropic(headers: RawHeaders) -> RawHeaders:
    from isthmus.server.rate_limits import as_anthropic

    return as_anthropic(headers, time.time())
