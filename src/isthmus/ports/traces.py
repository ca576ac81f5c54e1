"""Traces: one record for each request, and who keeps them.

A `TraceSummary` is what lists, filters and totals know of it; a `Trace` is all of it. At level `metadata` a trace holds
no content: of each body its fields and messages in wire order, each with its size and a keyed hash (`Piece`).
Whoever has the same bytes at the same place has the same hash, on this installation only. At level `full` it holds the
bodies themselves, too, scrubbed and within a limit.

Every read is on behalf of an owner, who sees their own; `None` is the operator, who sees all, also what was refused
before anybody knew whose it was. Times are seconds; `at` is the clock's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from isthmus.ports.facts import Asking, Mark

Capture = Literal["off", "metadata", "full"]
Door = Literal["responses", "chat", "messages", "embeddings", "images", "search", "other"]

MOST_WALKED: Final = 1_000
"""Traces of one conversation that are handed out."""


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


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
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


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    summary: TraceSummary
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


class TraceFilter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is looked for; an empty word, and `None`: anything."""

    since: float | None = None
    until: float | None = None
    """Ended at `since` or later, and before `until`. Totals count whole steps of five minutes."""
    provider: str = ""
    model: str = ""
    """As the provider calls it."""
    outcome: str = ""
    code: str = ""
    door: str = ""
    key: str = ""
    client: str = ""
    thread: str = ""
    """Totals do not know this one."""
    changed: bool | None = None
    """Whether anything was degraded or ignored. Totals do not know this one either."""


class TracePage(msgspec.Struct, frozen=True):
    traces: tuple[TraceSummary, ...]
    has_more: bool


Grouping = Literal["", "provider", "model", "key", "client", "door", "outcome", "code", "time"]


class Spread(msgspec.Struct, frozen=True):
    """How long things took: so many took up to so many seconds; each step is a quarter of a doubling."""

    steps: tuple[tuple[float, int], ...] = ()

    def percentile(self, share: float) -> float | None:
        """Seconds within which this share of them was done, to within a fifth."""
        left = share * sum(count for _, count in self.steps)
        for seconds, count in self.steps:
            left -= count
            if left <= 0 and count:
                return seconds
        return None


class TraceTotal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sums over many requests."""

    group: str = ""
    """The value of what they are grouped by; of `time`, the beginning of the step in seconds since 1970."""
    requests: int = 0
    failed: int = 0
    """Of these, how many failed or were refused."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Requests whose price is not known."""
    retries: int = 0
    degraded: int = 0
    ignored: int = 0
    seconds: float = 0.0
    total: Spread = Spread()
    first_token: Spread = Spread()


class TraceStats(msgspec.Struct, frozen=True, kw_only=True):
    traces: int
    bytes: int
    oldest: float | None
    newest: float | None
    latest: int
    """The highest `seq` so far."""


class TraceStore(Protocol):
    """Where traces are kept: apart from the responses, so that saving these never waits for it.

    `keep`, `forget` and `prune` are called by one thread, which may wait; the reads by any loop. Like the store of the
    responses it has no policy: times and limits are arguments.
    """

    def keep(self, traces: Sequence[Trace]) -> None:
        """Write them in this order; each gets the next `seq`, and the `thread` of the response that it continues."""

    def forget(self, owner: str, response: str) -> None:
        """A response was deleted: of its trace only the summary stays."""

    def prune(self, *, older_than: float | None = None, max_bytes: int | None = None, most: int = 1000) -> int:
        """Forget the oldest, at most so many of them; how many went. 0: nothing is over the limits any more. Totals of
        whole days (UTC) before `older_than` go as well, those of traces that went for their size stay."""

    def close(self) -> None: ...

    async def find(self, owner: str | None, id: str) -> Trace | None:
        """By the id of the request, or of its response."""

    async def list(
        self,
        owner: str | None,
        filter: TraceFilter = TraceFilter(),  # noqa: B008  # frozen
        *,
        limit: int = 50,
        after: int | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> TracePage:
        """One page; `after` is the `seq` that the last one ended with. Following: `asc`, from the latest on."""

    async def totals(
        self,
        owner: str | None,
        filter: TraceFilter = TraceFilter(),  # noqa: B008  # frozen
        *,
        by: Grouping = "",
        step: int = 3600,
        most: int = 1000,
    ) -> Sequence[TraceTotal]:
        """Sums, the largest group first; by `time`, the oldest first, each `step` seconds long (a multiple of 300): for
        more than a hundred of these without how long things took."""

    async def walk(self, owner: str | None, id: str, *, most: int = MOST_WALKED) -> Sequence[TraceSummary]:
        """The conversation that a request belongs to, as far as it was traced: the latest `most` turns, oldest first.
        Of a response that was continued twice, both ways are in it (`previous`). Empty: no such trace."""

    def export(self, owner: str | None, filter: TraceFilter = TraceFilter()) -> AsyncIterator[Trace]:  # noqa: B008
        """All that match, oldest first, a few at a time."""

    async def stats(self, owner: str | None = None) -> TraceStats: ...


class Capturing(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is captured now."""

    capture: Capture
    full_until: float | None = None
    """Until when everything is; `None`: nothing, or what `full_for` names."""
    owner: str = ""
    key: str = ""
    """Of whom, if not of everybody."""
    kept: int = 0
    lost: int = 0
    """Traces that found no room, or could not be written."""
    withheld: int = 0
    """Traces whose words could not be scrubbed in time, and were left out."""
    delayed: int = 0
    """Deletes that had to wait, because too many others were not carried out yet."""


class Tracing(Protocol):
    """The traces of a gateway that runs."""

    @property
    def store(self) -> TraceStore: ...

    def wants_all(self, owner: str, key: str, size: int) -> bool:
        """Whether a request of theirs is to be captured with all its content."""

    async def room_to_forget(self) -> None:
        """Asked before a response is deleted: waits while too many others are still to be forgotten. Raises
        `StoreUnavailable` if that does not end."""

    def forget(self, owner: str, response: str) -> None:
        """A response is deleted: also what is not written yet goes. Waits for nothing."""

    async def settle(self) -> None:
        """Until what was over before can be read; not for ever."""

    def capture_all(self, seconds: float, *, owner: str = "", key: str = "") -> Capturing:
        """Capture everything for so long, of everybody or of these; 0: no longer."""

    def capturing(self) -> Capturing: ...

    def capture_until(self, until: float, owner: str, key: str) -> None:
        """The same as another process was told: of everybody, or of these."""
