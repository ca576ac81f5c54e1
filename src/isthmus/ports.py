"""Every door to the outside, as Protocols, on one page: what the gateway needs, never who provides it.

`Backend` carries a planned body to an upstream and brings its deltas back.
`Store` keeps responses so that they can be fetched, continued and resumed. JSON travels through it as bytes:
what was encoded once is not encoded again. A store has no clock and no policy: times and limits are arguments.
`Workers` do work that may take long where it stops nobody; `Checker` does so for schemas, answers and grammars.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.deltas import Delta
    from isthmus.bridge.jobs import Job, Result
    from isthmus.bridge.types.plan import Lesson, OutputContract, Plan
    from isthmus.protocol.json import JsonObject


class Backend(Protocol):
    """One upstream. Entering `send` means that it has accepted; leaving it closes the connection at once."""

    def send(self, plan: Plan, body: JsonObject) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        """Raises `UpstreamFailed` on entering when it refuses, and from the iterator when it breaks off."""

    async def ready(self) -> str | None:
        """What keeps it from serving, in words; `None` when nothing is known to."""

    async def aclose(self) -> None: ...


class Workers(Protocol):
    """Processes of our own."""

    async def run(self, kind: str, payload: bytes) -> bytes:
        """Have a job done. Raises `WorkNotDone`: it met a limit, or none was free in time."""


class Checker(Protocol):
    """Checks whose length a client decides. Nothing here blocks the loop or waits without end."""

    async def admit(self, contract: OutputContract) -> None:
        """Whether answers can be checked against the contract's schema.

        Raises `RequestRefused` if not, `WorkNotDone` if there is no room to find out, or a bug of ours in the way.
        """

    async def check(self, job: Job) -> Result:
        """The result of a job; one that could not be done says so in its result."""


UNFINISHED: Final = ("queued", "in_progress")
"""Statuses of a response that still has something to come."""

DEFAULT_MAX_DEPTH: Final = 10_000
"""Turns a chain may have before it is refused: a guard against accidents, not a limit on conversations."""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One turn: the Response object as it was sent, and what was *new* in its input (never the history)."""

    id: str
    response: bytes
    """The Response object, compact JSON; its output items live inside it."""
    input: tuple[bytes, ...] = ()
    """The turn's own input items, each a JSON object."""
    previous_response_id: str | None = None
    created_at: float = 0.0
    status: str = "completed"
    model: str = ""
    provider: str = ""
    owner: str = ""
    """Who may see it. Every question below is asked on behalf of one owner and sees nobody else's rows."""
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """What a later turn needs of an earlier one. Whether its status may be continued is the caller's policy."""

    id: str
    status: str
    model: str
    provider: str
    input: tuple[bytes, ...]
    output: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive stream events, each one JSON object; `first` is the `sequence_number` of the first."""

    first: int
    events: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: tuple[bytes, ...]
    """Each with an `id`: its own, or one made from its response and position."""
    first_id: str | None
    last_id: str | None
    has_more: bool


@dataclass(frozen=True, slots=True)
class StoreStats:
    responses: int
    """Responses that can be fetched: deleted ones are not counted."""
    deleted: int
    """Deleted responses whose id is still remembered, so that it cannot come back."""
    unfinished: int
    pieces: int
    """Distinct items and large fields: what is shared is counted once."""
    bytes: int
    """Space in use (SQLite: pages in use; freed pages are not counted)."""
    oldest: float | None
    newest: float | None


@dataclass(frozen=True, slots=True)
class Pruned:
    responses: int
    bytes: int


class Store(Protocol):
    """Stored responses. Safe for many concurrent calls on one event loop; every method may wait on IO.

    Raises `RequestRefused` for what a client can fix, `ConfigError` (code `store_unavailable`) when the medium
    fails: disk full, locked by another process, damaged. Anything else is a bug.
    """

    async def save(self, record: StoredResponse, *, events: EventBatch | None = None) -> bool:
        """Write or overwrite one response, with its last stream events in the same transaction.

        Returns once it is as durable as the store promises. False: it was deleted meanwhile and stays deleted.
        An id keeps its owner and its parent for life; changing either is a `ValueError`.
        """

    async def load(self, id: str, *, owner: str = "") -> StoredResponse | None: ...

    async def delete(self, id: str, *, owner: str = "") -> bool:
        """Remove the content for good and remember the id. False: nothing there (or already deleted)."""

    async def chain(self, id: str, *, owner: str = "", max_depth: int = DEFAULT_MAX_DEPTH) -> list[StoredTurn]:
        """The turns that lead to `id` and `id` itself, oldest first.

        Refused with `previous_response_not_found` when a turn is unknown or deleted, and with
        `previous_response_chain_too_long` when there are more than `max_depth` of them.
        """

    async def items(self, ids: Sequence[str], *, owner: str = "") -> dict[str, bytes]:
        """The items that `item_reference`s name, input or output, in the order asked; unknown ids are left out.

        An id used for two different items names the one that was stored first.
        """

    async def list_input_items(
        self,
        id: str,
        *,
        owner: str = "",
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        """The items used to generate `id`: the history of earlier turns, input and output, then its own input.

        OpenAI documents the list as the items used to generate the response, so history belongs to it. An id
        that occurs twice is listed once. Earlier turns that were deleted are missing here, they do not fail it.
        None: no such response. An unknown `after` is refused.
        """

    async def update_status(
        self,
        id: str,
        status: str,
        *,
        owner: str = "",
        only_from: Collection[str] = (),
        fields: Mapping[str, Any] | None = None,
    ) -> bool:
        """Change the status, here and inside the Response object, with other Response `fields` if given.

        With `only_from` it changes only when the status is one of those: the check and the change are one step.
        """

    async def append_events(self, id: str, batch: EventBatch, *, owner: str = "") -> bool:
        """Keep stream events for a later resume. Batches follow one another without gap (else `ValueError`).

        Bounded for each response: the oldest batches go first. False: no such response, stop recording.
        """

    async def events(self, id: str, *, owner: str = "", after: int = -1) -> list[bytes]:
        """Stored events with a sequence number above `after`. Refused (`events_expired`) if some were dropped."""

    async def unfinished(self) -> list[StoredResponse]:
        """Responses of every owner that are queued or in progress: right after a start, what a crash left."""

    async def learn(self, lesson: Lesson, *, since: float = 0.0, most: int = 1000) -> None:
        """Keep a lesson; a later one on the same value of the same field of the same model takes its place.

        Lessons from before `since` go, and beyond `most` of them the oldest.
        """

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        """What was learned about a model since then, oldest first."""

    async def stats(self) -> StoreStats: ...

    async def prune(self, *, older_than: float | None = None, max_bytes: int | None = None) -> Pruned:
        """Forget conversations not continued since `older_than`, then the longest unused until `max_bytes` hold.

        A turn that a kept turn builds on is kept, and so is one that is unfinished.
        """

    def export(self) -> AsyncIterator[bytes]:
        """Every response of every owner as one JSON object per line, oldest first, deleted ones left out."""

    async def aclose(self) -> None:
        """Finish what was accepted, then close. Calling it again does nothing."""
