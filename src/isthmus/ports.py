"""Every door to the outside, as Protocols, on one page: what the gateway needs, never who provides it.

`Backend` carries a planned body to an upstream and brings its deltas back.
`Store` keeps responses so that they can be fetched, continued and resumed. JSON travels through it as bytes:
what was encoded once is not encoded again. A store has no policy: times and limits are arguments. Its clock says when a
lease ends, and nothing else: the processes that share a store have no other clock in common.
`Workers` do work that may take long where it stops nobody; `Checker` does so for schemas, answers and grammars.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.capabilities import Cost
    from isthmus.bridge.deltas import Delta
    from isthmus.bridge.jobs import Job, Result
    from isthmus.bridge.types.plan import Lesson, OutputContract, Plan
    from isthmus.errors import IsthmusError
    from isthmus.protocol.json import JsonObject


class Backend(Protocol):
    """One upstream. Entering `send` means that it has accepted; leaving it closes the connection at once."""

    def send(self, plan: Plan, body: JsonObject) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        """Raises `UpstreamFailed` on entering when it refuses, and from the iterator when it breaks off."""

    async def ready(self) -> str | None:
        """What keeps it from serving, in words; `None` when nothing is known to."""

    async def aclose(self) -> None: ...


class Sent(msgspec.Struct, frozen=True):
    """An upstream is asked."""

    id: str
    provider: str
    model: str
    attempt: int


class AttemptFailed(msgspec.Struct, frozen=True):
    """It failed, or broke off; another attempt may follow."""

    id: str
    provider: str
    model: str
    attempt: int
    failure: IsthmusError


class FirstToken(msgspec.Struct, frozen=True):
    """The model has begun to say something, so many seconds after it was asked."""

    id: str
    seconds: float


class Ended(msgspec.Struct, frozen=True):
    """A run is over: its whole life in one fact."""

    id: str
    owner: str
    provider: str
    model: str
    attempts: int
    outcome: str
    """The status of its response; `refused` where it failed before there was one."""
    failure: IsthmusError | None
    usage: Mapping[str, Any] | None
    cost: Cost
    seconds: float
    first_token: float | None
    degraded: int
    ignored: int
    background: bool = False


Fact = Sent | AttemptFailed | FirstToken | Ended


class Observer(Protocol):
    """Hears the facts of a request's life: a few for each request, none for each token."""

    def tell(self, fact: Fact) -> None:
        """Must neither wait nor raise."""


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


LOCAL: Final = "local"
"""The owner where nobody tells owners apart."""

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
    owner: str = LOCAL
    """Who may see it. Every question below is asked on behalf of one owner and sees nobody else's rows."""
    conversation: str | None = None
    memo: bytes = b""
    """What the gateway notes for itself: of an unfinished response what it needs to make it again, of a finished one
    how it was told. `update_status` drops the first with the end."""


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


@dataclass(frozen=True, slots=True)
class StoredWord:
    """What a provider's server said of its own models, as `providers.word` writes it."""

    provider: str
    place: str
    """Which server it was: another address is another server."""
    data: bytes
    heard_at: float


@dataclass(frozen=True, slots=True)
class Signal:
    """A word for whoever holds a lease: `cancel`, `delete`."""

    owner: str
    name: str
    word: str


@dataclass(frozen=True, slots=True)
class Held:
    """What the holder of leases has to know."""

    names: frozenset[tuple[str, str]]
    """(owner, name) of every lease it holds now. One that is missing was lost: it expired or was released."""
    signals: tuple[Signal, ...]
    """Words that came since the last time; those for one lease in the order in which they were told."""


def run_lease(id: str) -> str:
    """The name of the lease that says: somebody is making this response."""
    return f"run:{id}"


class Store(Protocol):
    """Stored responses. Safe for many concurrent calls on one event loop; every method may wait on IO.

    Several processes may share one store. Every method is one atomic step for all of them (`prune` and `export` are
    several). Leases say who is at work on what: an owner, a name, a holder (one process) and an end. One that has
    ended is as good as gone.

    Raises `RequestRefused` for what a client can fix, `StoreUnavailable` when the medium fails (deleted, replaced,
    read-only, full, locked by another process), and `StoreDamaged` when what is asked for is not what was written.
    Anything else is a bug. What is told as saved is where the next process looks for it, and what is handed out is what
    was saved. A medium that comes back is used again without anybody's doing.
    """

    async def check(self) -> None:
        """Raises `StoreUnavailable` if it is known, or seen at a glance, that nothing can be saved now.

        To be asked before anything costs something; it waits for nothing. That it says nothing is no promise.
        """

    async def save(
        self,
        record: StoredResponse,
        *,
        events: EventBatch | None = None,
        holder: str | None = None,
        history: Callable[[], tuple[bytes, ...]] | None = None,
    ) -> bool:
        """Write or overwrite one response, with its last stream events in the same transaction.

        Returns once it is as durable as the store promises. False: nothing was written, because it was deleted
        meanwhile and stays deleted, or because it is no longer for `holder` to write: another one holds `run:<id>`
        now, or somebody has finished the response. A lease that ended and that nobody took does no harm.
        An id keeps its owner and its parent for life; changing either is a `ValueError`.

        `history` gives the items of all turns before this one. Was the parent forgotten while its child was being made
        (`prune`, not `delete`), the response is kept as the first turn of a chain, with them as its input.
        """

    async def load(self, id: str, *, owner: str = LOCAL) -> StoredResponse | None: ...

    async def delete(self, id: str, *, owner: str = LOCAL) -> bool:
        """Remove the content for good and remember the id. False: nothing there (or already deleted)."""

    async def chain(self, id: str, *, owner: str = LOCAL, max_depth: int = DEFAULT_MAX_DEPTH) -> list[StoredTurn]:
        """The turns that lead to `id` and `id` itself, oldest first.

        Refused with `previous_response_not_found` when a turn is unknown or deleted, and with
        `previous_response_chain_too_long` when there are more than `max_depth` of them.
        """

    async def items(self, ids: Sequence[str], *, owner: str = LOCAL) -> dict[str, bytes]:
        """The items that `item_reference`s name, input or output, in the order asked; unknown ids are left out.

        An id used for two different items names the one that was stored first.
        """

    async def list_input_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
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
        owner: str = LOCAL,
        only_from: Collection[str] = (),
        fields: Mapping[str, Any] | None = None,
    ) -> bool:
        """Change the status, here and inside the Response object, with other Response `fields` if given.

        With `only_from` it changes only when the status is one of those: the check and the change are one step.
        """

    async def append_events(self, id: str, batch: EventBatch, *, owner: str = LOCAL, holder: str | None = None) -> bool:
        """Keep stream events for a later resume. Batches follow one another without gap (else `ValueError`).

        Bounded for each response: the oldest batches go first. False: no such response, or no longer for `holder` to
        write, as in `save`; stop recording. With a `holder`, the last events therefore go with the last `save`.
        """

    async def events(self, id: str, *, owner: str = LOCAL, after: int = -1) -> list[bytes]:
        """Stored events with a sequence number above `after`. Refused (`events_expired`) if some were dropped."""

    async def claim(self, name: str, *, owner: str = LOCAL, holder: str, seconds: float) -> bool:
        """Take a lease that nobody holds (or no longer), or extend one's own: it ends `seconds` from now.

        False: somebody else holds it. Claim `run:<id>` before the response is first saved as unfinished, or another
        process takes it for an orphan in between.
        """

    async def renew(self, holder: str, *, seconds: float) -> Held:
        """Extend every lease that this holder still has, and hear what it was told: each signal comes out once.

        To be called several times within the length of a lease. A lease that has ended is not extended, even if
        nobody took it: `claim` it again.
        """

    async def release(self, name: str, *, owner: str = LOCAL, holder: str) -> None:
        """Give a lease back, with the signals that nobody heard. Somebody else's is left alone."""

    async def signal(self, name: str, word: str, *, owner: str = LOCAL) -> bool:
        """Tell the holder of a lease a word; the same word is told once until it is heard. False: nobody holds it.

        True says that there is a holder, not that it has heard: look for what it does (`watch`), and at the lease's
        end look again. A word is for the one who holds the lease now: whoever takes it over does not hear it.
        """

    async def expired(self) -> list[StoredResponse]:
        """Orphans: unfinished responses of every owner whose lease `run:<id>` nobody holds, the oldest first.

        Several processes may see the same ones. Whoever wants to end one claims its lease first.
        """

    async def watch(self, seconds: float, *, since: int | None = None) -> int:
        """Wait until something may have changed, here or in another process, `seconds` at the longest.

        Wakes too often rather than too late. The answer is a mark: given back as `since`, it makes the wait begin
        where the last one ended, so that nothing in between is missed. Marks are good for one store object.

            mark = await store.watch(0)
            while not (found := await look()):
                mark = await store.watch(5, since=mark)
        """

    async def learn(self, lesson: Lesson, *, since: float = 0.0, most: int = 1000) -> None:
        """Keep a lesson; a later one on the same value of the same field of the same model takes its place.

        Lessons from before `since` go, and beyond `most` of them the oldest.
        """

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        """What was learned about a model since then, oldest first."""

    async def hear(self, word: StoredWord, *, since: float = 0.0, most: int = 200) -> None:
        """Keep what a server said; a later word of the same place takes its place.

        Words from before `since` go, and beyond `most` of them the oldest.
        """

    async def words(self, *, since: float = 0.0) -> list[StoredWord]:
        """What servers said since then, oldest first."""

    async def stats(self) -> StoreStats: ...

    async def prune(self, *, older_than: float | None = None, max_bytes: int | None = None) -> Pruned:
        """Forget conversations not continued since `older_than`, then the longest unused until `max_bytes` hold.

        A turn that a kept turn builds on is kept, and so is one that is unfinished. Leases that have ended go.
        """

    def export(self) -> AsyncIterator[bytes]:
        """Every response of every owner as one JSON object per line, oldest first, deleted ones left out."""

    async def aclose(self) -> None:
        """Finish what was accepted, then close. Calling it again does nothing."""
