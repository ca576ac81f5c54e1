"""One request and its answer: who asked, what ran, how it ended. Told in one line at its end."""

from __future__ import annotations

import logging
import time
from typing import Any, Final, Protocol

from starlette.types import Scope

from isthmus.errors import IsthmusError, RequestRefused
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.log import Level, tell
from isthmus.observe.log import run_facts
from isthmus.ports import Answered, Ended, Observer, Received
from isthmus.server.http import header, new_request_id

log = logging.getLogger("isthmus.server")

_PROBES: Final = ("/health", "/ready", "/metrics")
_ASKING: Final = ("POST", "WS")
_KEPT_OUT: Final = ("missing_api_key", "invalid_api_key")
"""Codes of those who did not say who they are."""
MAX_CLIENT_ID: Final = 512
EXCHANGE: Final = "isthmus.exchange"
"""Where it lies in its scope."""


class Work(Protocol):
    """What is made for a request."""

    @property
    def id(self) -> str: ...

    @property
    def failed(self) -> bool:
        """Whether it ended as a failure that no status tells."""

    def ended(self) -> Ended: ...


class Exchange:
    __slots__ = (
        *("_observer", "_received", "_started", "anthropic", "caller", "client_id", "failure", "id", "left", "method"),
        *("path", "peer", "run", "size", "status", "upgraded"),
    )

    def __init__(self, method: str, path: str, peer: str = "", observer: Observer | None = None) -> None:
        self._started = time.perf_counter()
        self._observer = observer
        self._received: Received | None = None
        self.id = new_request_id()
        self.method = method
        self.path = path
        self.peer = peer
        """The address that it came from, or that a trusted proxy names; empty on this very machine."""
        self.caller: Caller = LOCAL
        self.client_id = ""
        """What its client calls it (`X-Client-Request-Id`), if it does."""
        self.run: Work | None = None
        """What was made for it, if anything was."""
        self.status: int | None = None
        """The HTTP status that was sent."""
        self.failure: IsthmusError | None = None
        self.left = False
        """Whether the client went away before the end."""
        self.anthropic = False
        """Whether it is told of errors as Anthropic's clients read them."""
        self.upgraded = False
        """Whether it became a WebSocket: what is asked there has its own lines."""
        self.size = 0
        """Bytes of its body."""

    @property
    def milliseconds(self) -> float:
        """How long it takes already."""
        return (time.perf_counter() - self._started) * 1000

    def receive(self, size: int, traceparent: str = "", raw: bytes | bytearray | None = None) -> None:
        """All of it is here, and who asks is known: what follows is asked in this request."""
        self.size = size
        observer, caller = self._observer, self.caller
        if observer is not None:
            self.caller = caller.asking(self.id, time.time())
            seconds = time.perf_counter() - self._started
            who = (caller.owner, caller.key, caller.client.name, self.method, self.path)
            self._received = Received(self.id, *who, size, seconds, traceparent, raw)
            observer.tell(self._received)

    def tell(self) -> None:
        """It is over."""
        if self.upgraded:
            return
        self._tell_observer()
        level = self._level()
        if not log.isEnabledFor(getattr(logging, level.upper())):
            return
        facts: dict[str, Any] = {
            "id": self.id,
            "client_id": self.client_id or None,
            "caller": self.caller.owner,
            "key": self.caller.key or None,
            "peer": self.peer or None,
            "client": self.caller.client.name or None,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "left": self.left or None,
            "ms": round(self.milliseconds, 1),
        }
        if self.run is not None:
            facts |= run_facts(self.run.ended())
        if self.failure is not None:
            facts |= {"code": self.failure.code, "param": self.failure.param, "reason": self.failure.message}
            if self.failure.provider:
                facts["provider"] = self.failure.provider
        tell(log, level, "request.done", **facts)

    def _tell_observer(self) -> None:
        """What only looks is not observed, unless it was kept out."""
        failure, caller = self.failure, self.caller
        kept_out = failure is not None and failure.code in _KEPT_OUT
        if self._observer is None or (self.method not in _ASKING and not kept_out):
            return
        fact = Answered(
            request=self.id,
            id="" if self.run is None else self.run.id,
            owner="" if kept_out else caller.owner,
            key=caller.key,
            client=caller.client.name,
            method=self.method,
            path=self.path,
            status=self.status or 0,
            failure=failure,
            left=self.left,
            seconds=time.perf_counter() - self._started,
            size=self.size,
            client_id=self.client_id,
            received=self._received,
        )
        self._observer.tell(fact)

    def _level(self) -> Level:
        """A failure is a warning, whoever is to blame but the caller; a probe is nobody's news."""
        failed = self.run is not None and self.run.failed
        blamed = self.failure is not None and self.failure.meaning.turn != "caller"
        if failed or blamed or (self.status or 0) >= 500:
            return "warning"
        return "debug" if self.path in _PROBES else "info"


def read_client_id(scope: Scope) -> str:
    """A client's own name for its request, to be told back and logged: a line of ASCII, as OpenAI takes it."""
    given = header(scope, b"x-client-request-id")
    if not given:
        return given
    if len(given) > MAX_CLIENT_ID or not (given.isascii() and given.isprintable()):
        raise RequestRefused(
            f"header `X-Client-Request-Id` must be at most {MAX_CLIENT_ID} characters of printable ASCII",
            code="invalid_value",
            param="X-Client-Request-Id",
        )
    return given


def exchange_of(scope: Scope) -> Exchange:
    exchange: Exchange = scope[EXCHANGE]
    return exchange
