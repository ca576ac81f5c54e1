"""Who keeps traces, and what they are asked about many of them.

Every read is on behalf of an owner, who sees their own; `None` is the operator, who sees all, also what was refused
before anybody knew whose it was. Times are seconds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal, Protocol

import msgspec

from isthmus.ports.packed import PackedTrace
from isthmus.ports.traced import Capture, Trace, TraceSummary

MOST_WALKED: Final = 1_000
"""Traces of one conversation that are handed out."""


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

    def keep(self, traces: Sequence[PackedTrace]) -> None:
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
