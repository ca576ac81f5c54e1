"""A trace: one record for each request.

A `TraceSummary` is what lists, filters and totals know of it; a `Trace` is all of it. At level `metadata` a trace holds
no content: of each body its fields and messages in wire order, each with its size and a keyed hash (`Piece`).
Whoever has the same bytes at the same place has the same hash, on this installation only. At level `full` it holds the
bodies themselves, too, scrubbed and within a limit. Times are seconds; `at` is the clock's.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from isthmus.ports.facts import Asking, Mark

Capture = Literal["off", "metadata", "full"]
Door = Literal["responses", "chat", "messages", "embeddings", "images", "search", "other"]


class Piece(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One field of a body, or one message (tool, item) of a field that is a list of them, as its bytes travel."""

    path: str
    """`model`, `tools[0]`, `messages[3]` …"""
    bytes: int
    """Without marks for a prompt cache, which are no part of it."""
    hash: str
    """The same for the same bytes; keyed, so that nothing can be guessed from it."""
    role: str = ""
    """Of a message, as it says itself: `user`; of a tool, its name; of an item, its type."""


class TracedBody(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    bytes: int = 0
    pieces: tuple[Piece, ...] = ()
    """In the order of the wire: two bodies are byte-identical up to the first piece that differs."""
    more: int = 0
    """Pieces behind these that were only counted."""
    content: msgspec.Raw = msgspec.Raw()
    """The body itself as JSON, scrubbed; empty unless all was captured."""
    cut: str = ""
    """Why there is no content although all was to be captured."""


class TracedError(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    code: str
    message: str
    param: str | None = None
    provider: str = ""
    status: int | None = None
    """Of the provider's answer."""
    request_id: str = ""
    """By which the provider knows it."""


class TracedRetry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    error: TracedError
    wait: float = 0.0
    elsewhere: bool = False


class TracedCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One asking of an upstream."""

    provider: str
    model: str
    attempt: int
    why: Asking
    at: float
    """Seconds since the request came."""
    body: TracedBody = TracedBody()
    first_byte: float | None = None
    retries: tuple[TracedRetry, ...] = ()
    error: TracedError | None = None
    key: str = ""
    """Under which name the key stands that it was shown, where callers have keys of their own."""


class TracedDecision(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    path: str
    action: str
    reason: str = ""
    code: str = ""
    sends: tuple[str, ...] = ()
    """Upstream fields that carry it out."""
    value: int | float | bool | None = None
    """What takes effect, where that is no text."""


class TracedTool(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    kind: str
    name: str
    seconds: float
    failed: bool = False
    arguments: TracedBody = TracedBody()
    output: TracedBody = TracedBody()
    at: float = 0.0
    """When it began, in seconds after the request came."""
    server: str = ""
    """The label of the MCP server whose tool it is."""

    @property
    def title(self) -> str:
        """Its name, with that of its server where it has one: two servers may have a tool of the same name."""
        return f"{self.server}.{self.name}" if self.server else self.name


class TracedCheck(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    valid: bool
    seconds: float
    cleaned: bool = False
    unchecked: str = ""
    errors: int = 0
    words: tuple[str, ...] = ()
    """What was wrong, where all was captured: it quotes the answer."""


class TracedItem(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One item of the answer."""

    type: str
    status: str = ""
    bytes: int = 0
    name: str = ""
    """Of the tool, if it is a call."""


class Timings(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    body: float = 0.0
    """Until all of the request was there."""
    parse: float | None = None
    plan: float | None = None
    first_byte: float | None = None
    """From sending until the head of the upstream's answer was here."""
    first_token: float | None = None
    """From the run's beginning."""
    settle: float = 0.0
    """From the upstream's last word to the end."""
    run: float | None = None
    total: float = 0.0
    """From the first byte of the request to the last of its answer; of a background run, to its end."""


class TraceSummary(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    id: str
    """Of the request, as its client was told (`X-Request-Id`); of a run without one, the run's."""
    at: float
    """When it came."""
    ended_at: float
    """When it was over; lists are in this order, and filters by time mean this one."""
    seq: int = 0
    """Its place among all traces: higher for each further one. What pages and followers go on from."""
    response: str = ""
    """Of the response: `resp_…`, `emb_…`; empty: there was none."""
    owner: str = ""
    key: str = ""
    client: str = ""
    client_id: str = ""
    door: Door = "other"
    method: str = ""
    path: str = ""
    asked_model: str = ""
    provider: str = ""
    model: str = ""
    stream: bool = False
    background: bool = False
    outcome: str = ""
    """`completed`, `incomplete`, `failed`, `cancelled`; `refused`: nothing was made of it."""
    status: int = 0
    """Of our answer over HTTP."""
    code: str = ""
    """Of the failure."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    """US dollars, where the prices are known."""
    total: float = 0.0
    first_token: float | None = None
    first_byte: float | None = None
    overhead: float | None = None
    """What the gateway took itself: parse, plan and settle."""
    attempts: int = 0
    retries: int = 0
    degraded: int = 0
    ignored: int = 0
    previous: str = ""
    """The response that it continues."""
    conversation: str = ""
    thread: str = ""
    """The same for all turns of one conversation: told by `conversation`, by the chain of responses, by the client's
    session (`prompt_cache_key`), or, where nobody tells, by a hash of how it begins."""
    bytes: int = 0
    """Of the client's body."""
    capture: Capture = "metadata"
    deleted: bool = False
    """Whether its response was deleted: these figures are all that is left."""


NO_SUMMARY: Final = TraceSummary(id="", at=0.0, ended_at=0.0)
"""Of a trace whose summary stands beside it."""


class Trace(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    summary: TraceSummary = NO_SUMMARY
    timings: Timings = Timings()
    request: TracedBody = TracedBody()
    """What the client sent, as the Responses (or Embeddings) request that its door made of it."""
    history: int = 0
    """Items of earlier turns that were put before it."""
    decisions: tuple[TracedDecision, ...] = ()
    diagnostics: tuple[dict[str, Any], ...] = ()
    """As they stand in the body of the answer (`isthmus.diagnostics`), or in that of the refusal."""
    calls: tuple[TracedCall, ...] = ()
    tools: tuple[TracedTool, ...] = ()
    checks: tuple[TracedCheck, ...] = ()
    output: tuple[TracedItem, ...] = ()
    answer: TracedBody = TracedBody()
    """The Response object; its content only where all was captured."""
    usage: dict[str, Any] | None = None
    batches: int = 0
    events: int = 0
    marks: tuple[Mark, ...] = ()
    error: TracedError | None = None
    traceparent: str = ""
